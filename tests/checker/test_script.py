"""check-config.sh as one file: where and how it runs, and that no failure to start is a verdict."""

import ast
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checker.support import (
    CASES,
    CHECKER,
    ENVIRONMENT,
    PATH,
    SCRIPT,
    dump,
    gpus,
    node,
    run_script,
)

from gpuwl.lab import check_script
from gpuwl.lab.artifacts import Artifacts

GOOD = dump(node("good", "container", gpus(gpu="4")))
BAD = dump(node("bad", "vm-vgpu", gpus(gpu="4")))
AGREES = next(case for case in CASES if case.stem == "001-three-modes")


def test_committed_file_is_the_rendered_one() -> None:
    assert SCRIPT.read_text(encoding="utf-8") == check_script.render(), "make render"
    assert stat.S_IMODE(SCRIPT.stat().st_mode) == 0o755


def test_installed_below_a_root(tmp_path: Path) -> None:
    path = check_script.install(Artifacts(tmp_path))
    assert path == tmp_path / "bin" / "check-config.sh"
    assert path.read_text() == check_script.render()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_source_is_small_and_old_enough() -> None:
    source = CHECKER.read_text(encoding="ascii")
    assert len(source) < check_script.LARGEST_SOURCE
    ast.parse(source, feature_version=(3, 8))


def test_source_imports_only_the_standard_library() -> None:
    imported = set()
    for part in ast.walk(ast.parse(CHECKER.read_text())):
        if isinstance(part, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in part.names}
        elif isinstance(part, ast.ImportFrom):
            imported.add(str(part.module).split(".")[0])
    assert imported <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_named_shells(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert run_script(AGREES, command=(shell, SCRIPT)).out == "OK=3\n"
    assert run_script("-", data=BAD, command=(shell, SCRIPT)).code == 1
    assert run_script("-", command=(shell, SCRIPT)).code == 2


def test_from_anywhere_through_a_symlink(tmp_path: Path) -> None:
    link = tmp_path / "a link"
    link.symlink_to(SCRIPT)
    for cwd in (Path("/"), tmp_path):
        assert run_script(AGREES, command=(link,), cwd=cwd).out == "OK=3\n"


def test_copied_alone_on_path(tmp_path: Path) -> None:
    shutil.copy(SCRIPT, tmp_path / "check")
    shutil.copy(AGREES, tmp_path / "nodes.json")
    env = {"PATH": f"{tmp_path}:{PATH}"}
    assert run_script("nodes.json", command=("check",), cwd=tmp_path, env=env).out == "OK=3\n"


def test_dump_on_stdin_and_empty_environment() -> None:
    result = run_script("-", data=GOOD, command=("/usr/bin/env", "-i", SCRIPT))
    assert result == (0, "OK=1\n", "")


def test_process_substitution() -> None:
    line = f'"{SCRIPT}" <(cat "{AGREES}")'
    assert subprocess.check_output(["/bin/bash", "-c", line], env=ENVIRONMENT) == b"OK=3\n"


def test_nothing_in_folder_or_environment_is_imported_or_obeyed(tmp_path: Path) -> None:
    for name in ("json", "_json", "codecs", "gc", "sitecustomize", "usercustomize", "fnmatch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "rc").write_text("exit 0\n")
    env = ENVIRONMENT | {
        "PYTHONPATH": str(tmp_path),
        "PYTHONSTARTUP": str(tmp_path / "json.py"),
        "PYTHONHOME": str(tmp_path),
        "PYTHONINSPECT": "1",
        "PYTHONIOENCODING": "utf-16",
        "BASH_ENV": str(tmp_path / "rc"),
        "ENV": str(tmp_path / "rc"),
        "BASH_FUNC_python3%%": "() { exit 0; }",
        "BASH_FUNC_command%%": "() { exit 0; }",
        "SHELLOPTS": "xtrace",
        "GPUWL_OUTPUT": "json",
        "GPUWL_ROOT": str(tmp_path),
    }
    result = run_script("-", "--ignore", "x", data=BAD, env=env, cwd=tmp_path)
    assert (result.code, result.lines, result.err) == (1, ["MISMATCH=bad"], "")


def test_bash_as_sh_obeys_nothing_of_the_callers(tmp_path: Path) -> None:
    """Where /bin/sh is bash, it imports functions and options even then."""
    (tmp_path / "sh").symlink_to("/bin/bash")
    (tmp_path / "rc").write_text("exit 0\n")
    functions = ("command", "printf", "python3", "exit", "set", "unset", "if")
    env = ENVIRONMENT | {f"BASH_FUNC_{name}%%": "() { exit 0; }" for name in functions}
    env |= {"BASH_ENV": str(tmp_path / "rc"), "ENV": str(tmp_path / "rc"), "SHELLOPTS": "errexit"}
    for data, code in ((BAD, 1), (GOOD, 0), (b"", 2)):
        result = run_script("-", data=data, env=env, command=(tmp_path / "sh", SCRIPT))
        assert result.code == code
        assert result.lines == {1: ["MISMATCH=bad"], 0: ["OK=1"], 2: []}[code]


def python_that(tmp_path: Path, body: str) -> dict[str, str]:
    """Return an environment in which `python3` is a shell script."""
    (tmp_path / "python3").write_text(f"#!/bin/sh\n{body}\n")
    (tmp_path / "python3").chmod(0o755)
    return {"PATH": str(tmp_path)}


class TestFailureToStart:
    """Each ends in 2, with nothing on stdout, and says something."""

    def refuse(self, env: dict[str, str], words: str) -> None:
        result = run_script("-", data=GOOD, env=env)
        assert (result.code, result.out) == (2, "")
        assert words in result.err
        assert "Traceback" not in result.err

    def test_no_python(self, tmp_path: Path) -> None:
        self.refuse({"PATH": str(tmp_path)}, "python3 was not found")

    @pytest.mark.parametrize("status", [0, 1, 3, 126, 127, 255])
    def test_python_that_ends_at_once(self, tmp_path: Path, status: int) -> None:
        env = python_that(tmp_path, f"exit {status}")
        self.refuse(env, f"could not run the checker (status {status})")

    def test_python_that_is_killed(self, tmp_path: Path) -> None:
        self.refuse(python_that(tmp_path, "kill -9 $$"), "(status 137)")

    def test_python_that_is_no_program(self, tmp_path: Path) -> None:
        (tmp_path / "python3").write_bytes(b"\x7fELF nonsense")
        (tmp_path / "python3").chmod(0o755)
        self.refuse({"PATH": str(tmp_path)}, "could not run the checker")

    def test_python_without_its_library(self, tmp_path: Path) -> None:
        env = python_that(tmp_path, f"PYTHONHOME={tmp_path} exec {sys.executable} -c pass")
        self.refuse(env, "could not run the checker")

    def test_old_python(self, tmp_path: Path) -> None:
        """The interpreter is real; only the version that it reports is made older."""
        old = "import sys; sys.version_info = (3, 7, 16)"
        body = f'exec {sys.executable} -c "{old}\n$4" "$@"'
        self.refuse(python_that(tmp_path, body), "python3 is Python 3.7: 3.8 or newer is needed")


def interpreters() -> list[Path]:
    """Return each CPython of this machine, on PATH or kept by pyenv."""
    found = [shutil.which(f"python3.{minor}") for minor in range(6, 16)]
    paths = [Path(path).resolve() for path in found if path]
    paths = [path for path in paths if "shims" not in path.parts]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return sorted({*paths, *pyenv.glob("3.*/bin/python3")})


@pytest.mark.parametrize("python", interpreters(), ids=str)
def test_every_interpreter_of_this_machine(python: Path, tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(python)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    version = subprocess.check_output([python, "-c", "import sys; print(sys.version_info[:2])"])
    if ast.literal_eval(version.decode()) < (3, 8):
        result = run_script(AGREES, env=env)
        assert (result.code, result.out) == (2, "")
        assert "3.8 or newer is needed" in result.err
        return
    for case in CASES:
        code, *lines = case.with_suffix(".expect").read_text().splitlines()
        result = run_script(case, env=env)
        assert (str(result.code), result.lines) == (code, lines), case
    deep = GOOD.replace(b'"status":', b'"deep": ' + b"[" * 99_999 + b"]" * 99_999 + b', "status":')
    result = run_script("-", data=deep, env=env)
    assert (result.code, result.out) == (2, "")
    assert "no node is that deep" in result.err
    patterns = ("--ignore", "*/[!a-g]ic?", "--accept", "container=nvidia.com/mig-[12]g*")
    names = {"nvidia.com/nic0": "1", "nvidia.com/mig-1g.10gb": "1", "nvidia.com/gpu": "1"}
    strange = dump(node("n", "container", names))
    assert run_script("-", *patterns, data=strange, env=env) == (0, "OK=1\n", "")
    alone = run_script(AGREES, command=(python, CHECKER))
    assert alone == (0, "OK=3\n", "")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_signals_leave_no_traceback(number: signal.Signals, code: int) -> None:
    """Sent to the whole group, as a terminal does it, while the script waits for its input."""
    process = subprocess.Popen(
        [SCRIPT, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    # More than a pipe holds: when this returns, the checker is reading.
    process.stdin.write(GOOD + b" " * 400_000)
    process.stdin.flush()
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=20)
    assert process.returncode in (code, -number)
    assert out == b""
    assert b"Traceback" not in err


def test_interrupt_while_the_checker_is_compiled(tmp_path: Path) -> None:
    """A python3 that sends itself the signal between its start and the checker's."""
    source = """
import os, sys
sys.argv[4] = sys.argv[4].replace("with open(3", "import os; os.kill(os.getpid(), 2)\\nwith open(3")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
    (tmp_path / "python3").write_text(f"#!{sys.executable} -IS{source}")
    (tmp_path / "python3").chmod(0o755)
    result = run_script(AGREES, env=ENVIRONMENT | {"PATH": str(tmp_path)})
    assert (result.code, result.out) in [(130, ""), (-signal.SIGINT, "")]
    assert "Traceback" not in result.err


def test_shell_part_is_plain() -> None:
    """No bashism that dash or bash 3.2 would not know, and no external program but python3."""
    head, _, rest = check_script.render().partition("3<<'END_OF_CHECKER'\n")
    tail = rest.partition("\nEND_OF_CHECKER\n")[2]
    assert rest.count("\nEND_OF_CHECKER\n") == 1
    assert head.startswith("#!/bin/sh\n")  # Alpine and NixOS have no /bin/bash
    shell = re.sub(r"(?s)-c '.*?\n'", "", head) + tail
    assert not re.search(r"\[\[|\blocal\b|<<<|\$'|=~|\bfunction\b|&>", shell)
    commands = set(re.findall(r"(?m)^\s*(?:if ! )?([a-z]\w+)\b(?!=)", shell))
    assert commands <= {
        "if",
        "then",
        "printf",
        "exit",
        "fi",
        "command",
        "status",
        "case",
        "esac",
        "set",
        "unset",
    }
