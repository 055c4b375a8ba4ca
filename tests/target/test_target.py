"""Which cluster is meant: every combination of options, variables and files."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from gpuwl.cli.app import App
from gpuwl.cli.commands import cli
from gpuwl.errors import InputError, SetupError
from gpuwl.target import target
from gpuwl.target.settings import Settings, default_root


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody, outside of any cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(target, "SERVICE_ACCOUNT", tmp_path / "token")
    return tmp_path


SOURCES = ("--local", "--kubeconfig", "--context", "KUBECONFIG", "~/.kube/config", "in-cluster")


@pytest.mark.parametrize(
    "given",
    list(itertools.product([False, True], repeat=len(SOURCES))),
    ids=lambda given: "+".join(s for s, g in zip(SOURCES, given, strict=True) if g) or "nothing",
)
def test_an_explicit_option_wins_then_the_environment_then_our_own(
    given: tuple[bool, ...], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, option, context, variable, usual, pod = given
    files = {name: home / name for name in ("option", "variable")}
    for file in files.values():
        file.write_text("current-context: c")
    if variable:
        monkeypatch.setenv("KUBECONFIG", str(files["variable"]))
    if usual:
        (home / ".kube").mkdir()
        (home / ".kube/config").write_text("current-context: c")
    if pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        (home / "token").write_text("")
    settings = Settings(
        local=local,
        kubeconfig=files["option"] if option else None,
        context="c" if context else None,
    )
    if local and (option or context):
        with pytest.raises(InputError, match="exclude each other"):
            target.choose(settings)
        return
    if context and not (option or variable or usual):
        with pytest.raises(SetupError, match="no kubeconfig to take context c from"):
            target.choose(settings)
        return
    choice = target.choose(settings)
    wanted = {
        "--local": local,
        "--kubeconfig": option,
        "KUBECONFIG": variable,
        "~/.kube/config": usual,
        "this Pod's service account": pod,
    }
    reason = next((name for name, there in wanted.items() if there), "no kubeconfig found")
    assert choice.reason == reason
    assert choice.local == (reason in {"--local", "no kubeconfig found"})
    assert choice.in_cluster == (reason == "this Pod's service account")
    paths = {
        "--kubeconfig": files["option"],
        "KUBECONFIG": files["variable"],
        "~/.kube/config": home / ".kube/config",
    }
    assert choice.kubeconfig == str(paths.get(reason, ""))
    assert choice.context == ("c" if context and not local else None)


@pytest.mark.parametrize("variable", ["nowhere", "nowhere:neither", "::"])
def test_a_variable_that_names_no_file_is_an_error_and_no_change_of_target(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", variable)
    with pytest.raises(SetupError, match=f"no kubeconfig at {variable}"):
        target.choose(Settings())


def test_one_file_of_a_list_suffices(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "there").write_text("")
    monkeypatch.setenv("KUBECONFIG", f"{home / 'gone'}::{home / 'there'}")
    assert target.choose(Settings()).kubeconfig == f"{home / 'gone'}::{home / 'there'}"


def test_an_empty_variable_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    assert target.choose(Settings()).local


def test_a_tilde_in_the_variable_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell replaces it, where it may; kubectl takes what is left as it stands."""
    (home / "config").write_text("")
    monkeypatch.setenv("KUBECONFIG", "~/config")
    with pytest.raises(SetupError, match="no kubeconfig at ~/config"):
        target.choose(Settings())


def test_a_pipe_is_a_kubeconfig_too() -> None:
    reading, writing = os.pipe()
    choice = target.choose(Settings(kubeconfig=Path(f"/dev/fd/{reading}")))
    assert choice.kubeconfig == f"/dev/fd/{reading}"
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("content", "context", "in_cluster"),
    [
        ("", None, True),
        ("clusters: null\ncurrent-context: ''\n", None, True),
        ("current-context: a\n", None, False),
        ("", "a", False),
    ],
    ids=range(4),
)
def test_in_a_pod_a_kubeconfig_that_means_nothing_does_not_count(
    content: str,
    context: str | None,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    in_cluster: bool,
) -> None:
    (home / ".kube").mkdir()
    (home / ".kube/config").write_text(content)
    assert not target.choose(Settings(context=context)).in_cluster
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    (home / "token").write_text("")
    assert target.choose(Settings(context=context)).in_cluster == in_cluster


def test_a_tilde_is_the_home(home: Path) -> None:
    (home / "config").write_text("")
    choice = target.choose(Settings(kubeconfig=Path("~/config")))
    assert choice.kubeconfig == str(home / "config")


def parsed(arguments: Sequence[str]) -> Settings:
    """Return the settings that a command line comes to, without running a command."""
    app = App()
    with cli.make_context("gpuwl", list(arguments), obj=app) as context:
        name, command, rest = cli.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert command is not None
        with command.make_context(name, rest, parent=context):
            return app.settings


OPTIONS: dict[str, tuple[list[str], Any, str, Any]] = {
    "root": (["--root", "/option"], Path("/option"), "/variable", Path("/variable")),
    "kubeconfig": (["--kubeconfig", "/o"], Path("/o"), "/v", Path("/v")),
    "context": (["--context", "o"], "o", "v", "v"),
    "local": (["--local"], True, "1", True),
    "timeout": (["--timeout", "1.5"], 1.5, "2", 2.0),
    "output": (["--output", "json"], "json", "json", "json"),
    "quiet": (["-q"], True, "true", True),
    "verbose": (["-v"], True, "yes", True),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_before_and_after_the_command_and_as_a_variable(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, value, variable, from_variable = OPTIONS[name]
    default = getattr(Settings(), name)
    assert getattr(parsed(["run"]), name) == default
    assert getattr(parsed([*words, "run"]), name) == value
    assert getattr(parsed(["run", *words]), name) == value
    monkeypatch.setenv(f"GPUWL_{name.upper()}", variable)
    assert getattr(parsed(["run"]), name) == from_variable
    assert getattr(parsed([*words, "run"]), name) == value
    assert getattr(parsed(["run", *words]), name) == value


def test_the_later_of_two_wins() -> None:
    assert parsed(["--root", "/first", "run", "--root", "/second"]).root == Path("/second")


@pytest.mark.parametrize(
    ("words", "variables", "local", "kubeconfig"),
    [
        (["--local"], {"KUBECONFIG": "/v", "CONTEXT": "v"}, True, None),
        (["--kubeconfig", "/o"], {"LOCAL": "1"}, False, Path("/o")),
        (["--context", "o"], {"LOCAL": "1"}, False, None),
        ([], {"LOCAL": "0", "KUBECONFIG": "/v"}, False, Path("/v")),
        ([], {"LOCAL": "1", "KUBECONFIG": "/v"}, True, Path("/v")),
    ],
    ids=range(5),
)
def test_an_option_drops_the_variables_that_contradict_it(
    words: list[str],
    variables: dict[str, str],
    *,
    local: bool,
    kubeconfig: Path | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"GPUWL_{name}", value)
    for arguments in ([*words, "run"], ["run", *words]):
        settings = parsed(arguments)
        assert (settings.local, settings.kubeconfig) == (local, kubeconfig)


@pytest.mark.parametrize("given", ["~/lab", "lab", "./lab/../lab"])
def test_a_root_is_absolute(given: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert parsed(["run", "--root", given]).root.resolve() == home / "lab"
    assert parsed(["run", "--root", given]).root.is_absolute()


def test_the_default_root(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert default_root() == Path("/root/gpuwl")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert default_root() == home / "gpuwl"


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e9", "soon"])
def test_a_timeout_that_is_none(value: str) -> None:
    with pytest.raises(click.BadParameter):
        parsed(["run", "--timeout", value])
