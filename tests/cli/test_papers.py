"""The papers and the program say the same."""

import re
import signal
from pathlib import Path

import click
import pytest

from gpuwl import __version__, errors, texts
from gpuwl.cli import commands, entry
from gpuwl.cli.helping import Group
from gpuwl.steps import STEPS

REPOSITORY = Path(__file__).parents[2]
PAPERS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])


def read(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def rows(paper: str, header: str) -> list[list[str]]:
    """Return the cells of the table that follows a header line."""
    body = read(paper).split(header, 1)[1].split("\n\n", 1)[0].strip().splitlines()[1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in body]


@pytest.mark.parametrize(
    ("paper", "header", "language"),
    [
        ("README.md", "| step | shows | writes |", "en"),
        ("README.ko.md", "| 단계 | 내용 | 산출물 |", "ko"),
    ],
)
def test_the_step_table(paper: str, header: str, language: str) -> None:
    titles = texts.catalogue(language, "lab")
    expected = [[str(s.number), titles[f"title_{s.slug}"], ", ".join(s.artifacts)] for s in STEPS]
    assert rows(paper, header) == expected


def test_the_exit_codes() -> None:
    table = rows("docs/reference.md", "| code | when |")
    listed = {int(code) for row in table for code in row[0].split(", ")}
    raised = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.GpuwlError)
    }
    signals = {128 + signal.SIGTERM, 128 + signal.SIGHUP}
    assert listed == raised | signals | {0, entry.BUG, entry.INTERRUPTED, entry.PIPE_CLOSED}


def test_the_option_table() -> None:
    listed = {
        row[0].strip("`").replace("\\|", "|"): row[1]
        for row in rows("docs/reference.md", "| option | variable | meaning |")
    }
    expected = {
        _usage(option): option.envvar
        for option in commands.cli.params
        if isinstance(option, click.Option) and option.envvar
    }
    assert {re.sub("`, `", ", ", usage): name for usage, name in listed.items()} == expected


def _usage(option: click.Option) -> str:
    if option.is_flag:
        return ", ".join(option.opts)
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    metavar = option.metavar or "|".join(map(str, choices))
    return f"{option.opts[0]} {metavar}"


def test_every_command_is_named() -> None:
    everything = "\n".join(map(str.strip, (paper.read_text("utf-8") for paper in PAPERS)))
    for name, command in commands.cli.commands.items():
        assert f"gpuwl {name}" in everything
        for below in command.commands if isinstance(command, Group) else ():
            assert f"gpuwl {name} {below}" in everything


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_links_lead_somewhere(paper: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", paper.read_text(encoding="utf-8"))
    gone = [
        link
        for link in links
        if not link.startswith("https://") and not (paper.parent / link).exists()
    ]
    assert gone == []


def test_the_readme_is_short_and_names_the_wheel_that_is_built() -> None:
    assert len(read("README.md").splitlines()) < 200
    assert f"gpuwl-{__version__}-py3-none-any.whl" in read("README.md")
    assert read("CHANGELOG.md").split("## ")[1].startswith(f"{__version__}\n")


def test_ci_runs_the_test_command_of_the_readme() -> None:
    command = read("README.md").split("<!-- command: test -->\n```sh\n")[1].split("\n```")[0]
    assert command in read(".ci/run").splitlines()


def test_the_picture_is_of_the_lab_that_runs() -> None:
    shown = re.sub(r"<[^>]+>", "", read("docs/run.svg")).replace("&#160;", " ")
    for step in STEPS:
        assert step.english_title in shown
    assert "job-cross waits: it asks for nvidia.com/gpu on a node labelled" in shown
