"""The commands of the lab: run, step, steps, explain."""

from pathlib import Path

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.completing import step_numbers
from gpuwl.cli.helping import command
from gpuwl.errors import SetupError
from gpuwl.texts import catalogue, text

LAST = 8
NUMBER = click.IntRange(1, LAST)


class Lesson(click.ParamType[int | str]):
    """The number of a step, or the id of one of the findings of `gpuwl review`."""

    name = "lesson"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number or the id."""
        if str(value) in catalogue("en", "review"):
            return str(value)
        if not str(value).isdecimal():
            self.fail(f"{value!r} is neither the number of a step nor a finding", param, ctx)
        number: int = NUMBER.convert(int(str(value)), param, ctx)
        return number


dry = click.option("--dry-run", is_flag=True)


@command()
@click.option("--all", "everything", is_flag=True)
@click.option("--from", "first", type=NUMBER, metavar="N", shell_complete=step_numbers)
@click.option("--to", "last", type=NUMBER, metavar="M", shell_complete=step_numbers)
@click.option("--rm", is_flag=True)
@dry
@options.root
@options.cluster
@options.lab_nodes
@options.plane
@options.consent
@options.timeout
@options.text_or_json
@click.pass_obj
def run(  # noqa: PLR0913 - one parameter per option of the command
    app: App, everything: bool, first: int | None, last: int | None, *, rm: bool, dry_run: bool
) -> int:
    """Run the steps of the lab in order."""
    if everything and (first or last):
        raise click.UsageError("--all and --from or --to exclude each other")
    if not everything and not first and not last:
        raise click.UsageError("say which steps: gpuwl run --all, or --from N --to M")
    first, last = first or 1, last or LAST
    if first > last:
        raise click.UsageError(f"--from {first} is behind --to {last}")
    app.command = "run"
    return _run(app, (first, last), dry_run, rm=rm)


@command()
@click.argument("number", type=NUMBER, metavar="N", shell_complete=step_numbers)
@dry
@options.root
@options.cluster
@options.lab_nodes
@options.plane
@options.consent
@options.timeout
@options.text_or_json
@click.pass_obj
def step(app: App, number: int, dry_run: bool) -> int:
    """Run step N alone, once what it needs is there."""
    app.command = "step"
    return _run(app, (number, number), dry_run)


@command()
@options.root
@options.output("text", "json")
@options.language
@click.pass_obj
def steps(app: App) -> int:
    """List the eight steps: what each needs and writes, and whether its files are there."""
    from gpuwl.cli.show import lessons
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.steps import STEPS

    app.command = "steps"
    artifacts = Artifacts(_root_to_show(app))
    app.payload = {"root": str(artifacts.root), "steps": lessons.overview(STEPS, artifacts)}
    lessons.print_overview(app.reporter, STEPS, artifacts)
    return 0


@command()
@click.argument(
    "what", type=Lesson(), metavar="[N|ID]", required=False, shell_complete=step_numbers
)
@options.lab_nodes
@options.output("text", "json")
@options.language
@click.pass_obj
def explain(app: App, what: int | str | None) -> int:
    """Tell why a step matters, what to look at, what goes wrong, and how to do it by hand."""
    from gpuwl.cli.show import lessons
    from gpuwl.lab.names import lab_nodes as lab_nodes_of
    from gpuwl.steps import STEPS

    app.command = "explain"
    if isinstance(what, str):
        app.payload["finding"] = {"id": what, "text": text(f"review.{what}")}
        lessons.print_finding(app.reporter, what)
        return 0
    nodes = lab_nodes_of(app.settings.lab_nodes)
    chosen = [step for step in STEPS if what in {None, step.number}]
    app.payload = {"steps": [lessons.lesson(step, nodes) for step in chosen]}
    lessons.print_lessons(app.reporter, chosen, nodes, with_introduction=what is None)
    return 0


def _run(app: App, span: tuple[int, int], dry_run: bool, *, rm: bool = False) -> int:
    from gpuwl.cli import dryrun, running

    if dry_run:
        dryrun.print_script(app, span)
    else:
        running.run_steps(app, span, rm=rm)
    return 0


def _root_to_show(app: App) -> Path:
    """Return the root, as a word where no home folder is known: a list needs none."""
    try:
        return app.settings.root
    except SetupError:
        return Path("~/gpuwl")
