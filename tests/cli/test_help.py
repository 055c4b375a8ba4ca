"""Help: every command has its words, two examples, and only options that mean something to it."""

from collections.abc import Iterator

import click
import pytest
from tests.conftest import Run

from gpuwl import texts
from gpuwl.cli.commands import cli
from gpuwl.cli.helping import Group


def commands() -> Iterator[tuple[str, click.Command]]:
    def below(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, Group):
            for name, one in command.commands.items():
                yield from below(one, f"{path} {name}")

    return below(cli, "gpuwl")


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("path", [path for path, _ in commands()])
def test_every_command_has_words_and_two_examples(path: str, language: str) -> None:
    known = texts.catalogue(language, "help")
    key = "_".join(path.split()[1:]).replace("-", "_") or "gpuwl"
    assert known[key]
    examples = known[f"{key}_examples"].strip().splitlines()
    assert len(examples) >= 2
    assert all(line.startswith("gpuwl ") or "gpuwl " in line for line in examples)


def test_every_option_has_words() -> None:
    known = texts.catalogue("en", "help")
    for path, command in commands():
        key = "_".join(path.split()[1:]).replace("-", "_") or "gpuwl"
        for option in command.params:
            if isinstance(option, click.Option):
                own = f"option_{key}_{option.name}"
                assert known.get(own) or known.get(f"option_{option.name}") or option.help, own


def test_commands_stand_before_options_and_nothing_is_cut_off(gpuwl: Run) -> None:
    shown = gpuwl("--help", env={"COLUMNS": "60"}).stdout
    assert shown.index("Commands:") < shown.index("Options:")
    assert "..." not in shown.split("Commands:")[1]


@pytest.mark.parametrize("words", [("help", "local", "up"), ("local", "up", "--help")])
def test_help_is_a_command_too(gpuwl: Run, words: tuple[str, ...]) -> None:
    done = gpuwl(*words)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: gpuwl local up [OPTIONS]")


def test_an_option_that_means_nothing_to_the_command_is_refused_before_it(gpuwl: Run) -> None:
    done = gpuwl("--root", "/nowhere", "check", "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: gpuwl check has no --root\nhint: gpuwl check -h\n"


@pytest.mark.parametrize("place", ["before", "after", "variable"])
def test_a_form_of_output_that_a_command_does_not_have(gpuwl: Run, place: str) -> None:
    words = {"before": ("--output", "junit", "steps"), "after": ("steps", "--output", "junit")}
    env = {"GPUWL_OUTPUT": "junit"} if place == "variable" else {}
    done = gpuwl(*words.get(place, ("steps",)), env=env)
    assert done.returncode == 2
    assert "'junit' is not one of" in done.stderr
