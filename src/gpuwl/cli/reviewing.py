"""The command `review`: what is wrong in manifests before they are applied."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import command
from gpuwl.errors import InputError

if TYPE_CHECKING:
    from gpuwl.findings import Finding
    from gpuwl.review.review import Review

FILE = click.Path(path_type=Path)
STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@command()
@click.argument("files", nargs=-1, metavar="[FILE|DIR|-]...")
@click.option("--nodes", type=FILE, metavar="FILE")
@click.option("--pods", type=FILE, metavar="FILE")
@click.option("--with", "more", multiple=True, metavar="FILE")
@click.option("--ignore", multiple=True, metavar="ID")
@options.cluster
@options.timeout
@options.output("text", "json", "sarif", "github", "junit")
@options.talk
@click.pass_obj
def review(  # noqa: PLR0913 - one parameter per option of the command
    app: App,
    files: tuple[str, ...],
    *,
    nodes: Path | None,
    pods: Path | None,
    more: tuple[str, ...],
    ignore: tuple[str, ...],
) -> int:
    """Say what is wrong in manifests before they are applied."""
    from gpuwl.review.review import Review, verdict

    app.command = "review"
    if pods and not nodes:
        raise click.UsageError("--pods needs --nodes FILE")
    if not files and not nodes:
        raise click.UsageError("name manifests, or a dump of nodes with --nodes")
    known = Review()
    app.payload["notSeen"] = _surround(app, known, nodes, pods, more)
    known.read(files)
    found = known.findings(ignore, nodes_too=not files)
    _tell(app, known, found)
    return 0 if verdict(found) else 1


def _surround(
    app: App, known: "Review", nodes: Path | None, pods: Path | None, more: Sequence[str]
) -> list[str]:
    """Take the surroundings; return the kinds that a cluster did not show."""
    from gpuwl.k8s import dump

    unseen: list[str] = []
    if nodes:
        dump.stream(_source(nodes), known.add_node, ("Node",))
    elif _names_a_cluster(app):
        unseen = _live(app, known)
    if pods:
        dump.stream(_source(pods), known.add_pod, ("Pod",))
    if more:
        known.read(more, as_surroundings=True)
    return unseen


def _source(path: Path) -> Path | int:
    from gpuwl.k8s import dump

    return dump.STANDARD_INPUT if path == Path("-") else path


def _names_a_cluster(app: App) -> bool:
    """Tell whether an option names a cluster: a checkout alone is reviewed without one."""
    settings = app.settings
    return bool(settings.local or settings.kubeconfig or settings.context or settings.name)


def _live(app: App, known: "Review") -> list[str]:
    from dataclasses import replace

    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane
    from gpuwl.review import cluster
    from gpuwl.target import connection, target

    choice = target.choose(app.settings)
    if choice.local:
        name = localplane.name_of(app)
        if not plane.is_up(name):
            raise InputError(
                f"the local control plane {name} is not up", hint="name a dump with --nodes"
            )
        choice = replace(choice, kubeconfig=str(plane.kubeconfig_path(name)))
    with connection.connect_to_read(choice, timeout=app.settings.timeout) as connected:
        return cluster.read(connected.cluster, known)


def _tell(app: App, known: "Review", found: "list[Finding]") -> None:
    from gpuwl import findings
    from gpuwl.review import writers

    form, reporter = app.settings.output, app.reporter
    app.payload |= {
        "reviewed": known.reviewed,
        "ignored": known.ignored,
        "unrendered": [{"file": one.file, "command": one.command} for one in known.unrendered],
        "remarks": known.not_seen(),
        "findings": [findings.as_data(each) for each in found],
    }
    if form == "sarif":
        reporter.raw(json.dumps(writers.sarif(found), indent=2, ensure_ascii=False) + "\n")
    elif form == "github":
        reporter.raw("".join(f"{line}\n" for line in writers.github(found)))
    elif form == "junit":
        reporter.raw(_junit(found))
    else:
        _tell_people(app, known, found)


def _junit(found: "list[Finding]") -> str:
    from gpuwl import findings

    names = dict.fromkeys(each.where for each in found) or {"review": None}
    cases = [
        findings.TestCase(name, 0.0, [each for each in found if each.where == name])
        for name in names
    ]
    words = {"expected": "expected", "found": "found", "fix": "fix"}
    return findings.junit("gpuwl review", cases, {}, words)


def _tell_people(app: App, known: "Review", found: "list[Finding]") -> None:
    from gpuwl.findings import Severity

    reporter = app.reporter
    for one in known.unrendered:
        reporter.warn(f"{one.file} is not rendered: {one.command}")
    for remark in known.not_seen():
        reporter.note(f"not in view: {remark}")
    weighty = [each for each in found if each.severity is not Severity.NOTE]
    for where in dict.fromkeys(each.where for each in weighty):
        _tell_workload(app, where, [each for each in weighty if each.where == where])
    for each in found:
        if each.severity is Severity.NOTE:
            reporter.note(f"note: {each.where}: {each.what}")
    if not weighty:
        reporter.result(f"OK={known.reviewed}", style="green")


def _tell_workload(app: App, where: str, found: "list[Finding]") -> None:
    """Print the line of one workload, and on a terminal each finding with its place and its fix."""
    reporter = app.reporter
    fixes = (f"; {each.fix}" if each.fix and not reporter.for_people else "" for each in found)
    reasons = "; ".join(
        f"{each.id}: {each.what}{fix}" for each, fix in zip(found, fixes, strict=True)
    )
    reporter.result(f"PROBLEM={where} {reasons}", style=STYLES[found[0].severity])
    for each in found:
        place = f"{each.file}:{each.line}" if each.file and each.line else each.file or ""
        if place and reporter.for_people:
            reporter.result(f"  {place}  {_line_of(each)}".rstrip())
        if each.fix and reporter.for_people:
            reporter.result(f"  fix: {each.fix}")


def _line_of(finding: "Finding") -> str:
    """Return the offending line itself, where the file can be read again."""
    from gpuwl.findings import shown

    path = Path(finding.file or "")
    if not finding.line or not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return shown(lines[finding.line - 1].strip()) if finding.line <= len(lines) else ""
