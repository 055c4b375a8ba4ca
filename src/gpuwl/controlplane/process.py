"""Processes that outlive the command that started them: who they are, starting, stopping.

A process is known by pid, start time, boot id and executable (`Identity`), never by its pid alone:
pids are used again. A record also knows the machine and the pid namespace: a home may be shared by
several of them, and what is not here is not dead for that. So that no kill of ours leaves an unknown process behind, a child first writes
its own identity into a record and only then becomes the component (`LAUNCHER`).

Outside facts: the fields of /proc/PID/stat are in proc(5); a process that lives stays signalled
through a pidfd even if its pid is used again, see pidfd_open(2), Linux 5.3.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwl.errors import SetupError
from gpuwl.system import waiting
from gpuwl.system.files import replace_file

LAUNCHER = """
set -eu
read -r stat < "/proc/$$/stat"
read -r boot < /proc/sys/kernel/random/boot_id
printf '%s\\n' "$stat" "$boot" "$3" "$4" "$5" "$6" > "$1"
[ -e "$2" ]
shift 6
exec "$@"
"""
"""Writes the record $1 (stat line, boot id, executable $3, shell $4, machine $5, pid namespace $6), then
becomes `$7 …`.

The gate $2 is looked at after the record was written. Whoever cleans up removes the gate first and
reads the records afterwards, so either the record is seen and its process stopped, or the launcher
sees that the gate is gone and ends. Both names are relative: a launcher that comes late finds
itself in a removed folder, never in that of the next start.
"""

SHELL = Path("/bin/sh")

PR_SET_PDEATHSIG = 1
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Child(subprocess.Popen[bytes]):
    """A child that is meant to outlive us: that it still runs is nothing to warn of."""

    def __del__(self) -> None:
        """Leave it alone."""


_children: list[Child] = []
"""Those that were not seen to end yet."""


@dataclass(frozen=True)
class Identity:
    """What tells a process from every other: any one of `executables` fits.

    `start` is in clock ticks since boot. Between record and exec the executable still is the shell.
    `machine` and `namespace` are empty in a record of gpuwl 0.1.0.
    """

    pid: int
    start: int
    boot_id: str
    executables: tuple[str, ...]
    machine: str = ""
    namespace: str = ""


@dataclass(frozen=True)
class Usage:
    """What a living process uses: resident memory in bytes, age in seconds."""

    memory: int
    age: float


@dataclass(frozen=True)
class Launch:
    """What to start and where: all names but `program` are relative to `folder`.

    What is `tied` is killed by the kernel once the thread that spawned it ends.
    """

    name: str
    program: Path
    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    gate: str
    tied: bool = False

    @property
    def record(self) -> Path:
        """The file that the child writes its identity to."""
        return record_path(self.folder, self.name)


def record_path(folder: Path, name: str) -> Path:
    """Return where the identity of the component `name` is recorded."""
    return folder / f"{name}.process"


def log_path(folder: Path, name: str) -> Path:
    """Return where the component `name` writes its output."""
    return folder / f"{name}.log"


def spawn(launch: Launch) -> Child:
    """Start a component in its own session, detached from the terminal, pipes and our environment.

    Raises OSError where there is no shell, or where no more processes may be started.
    """
    executable, shell = os.path.realpath(launch.program), os.path.realpath(SHELL)
    launcher = [str(SHELL), "-c", LAUNCHER, "gpuwl-launch"]
    names = [launch.record.name, launch.gate, executable, shell, machine(), namespace()]
    path = log_path(launch.folder, launch.name)
    path.touch(mode=0o600)
    with path.open("ab") as log:
        child = Child(
            [*launcher, *names, executable, *launch.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=launch.folder,
            env=launch.environment,
            start_new_session=True,
            umask=0o077,
            preexec_fn=_tie() if launch.tied else None,
        )
    _children.append(child)
    return child


def _tie() -> Callable[[], None]:
    """Return what makes a child die with us: prctl(2), kept across execve(2)."""
    import ctypes

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # we died before the call

    return tie


def read_record(path: Path) -> Identity | None:
    """Return the identity in a record; None where it is missing or was cut off in the writing."""
    try:
        stat, boot_id, *rest = path.read_text().splitlines()
        place = [*rest[2:4], "", ""]
        pid, start = int(stat.split()[0]), _start_of(stat)
        return Identity(pid, start, boot_id, tuple(rest[:2]), place[0], place[1])
    except (OSError, ValueError, IndexError):
        return None


def settle(child: Child, path: Path) -> None:
    """Wait for the record of a child, and put into it what the child really became.

    A wrapper script execs another file than the one that was started. A launcher that was not heard
    of yet would escape whoever stops all that is recorded. The child was not waited for, so its pid
    cannot be somebody else's.
    """

    def look() -> bool | None:
        return True if read_record(path) or child.poll() is not None else None

    waiting.until(look, seconds=5, every=0.005)
    who = read_record(path)
    executable = None if child.poll() is not None else _executable_of(child.pid)
    if who and executable and executable not in who.executables:
        _record_executable(path, executable)


def _record_executable(path: Path, executable: str) -> None:
    lines = path.read_text().splitlines()
    text = "\n".join([*lines[:2], executable, *lines[3:], ""])
    replace_file(path, text.encode(), 0o600, durable=False)


def alive(identity: Identity | None) -> bool:
    """Say whether that very process runs here; a zombie is dead.

    An executable that may not be looked at (without CAP_SYS_PTRACE, for one) speaks against nothing.
    """
    if identity is None or boot_id() != identity.boot_id or not in_sight(identity):
        return False
    stat = _stat_of(identity.pid)
    return (
        stat is not None
        and _state_of(stat) not in {"Z", "X", "x"}
        and _start_of(stat) == identity.start
        and _executable_of(identity.pid) in {None, *identity.executables}
    )


def elsewhere(boot: str, host: str) -> bool:
    """Say whether what was recorded under this boot id is on another machine, which cannot be seen here."""
    return boot != boot_id() and host not in {"", machine()}


def in_sight(identity: Identity) -> bool:
    """Say whether its pid means here what it meant where it was recorded."""
    return identity.namespace in {"", namespace()}


def suspended(identity: Identity) -> bool:
    """Say whether that very process was halted by SIGSTOP: it lives, and answers nobody."""
    stat = _stat_of(identity.pid)
    return stat is not None and _state_of(stat) == "T" and alive(identity)


def works(identity: Identity | None) -> bool:
    """Say whether that very process runs and is not suspended."""
    return identity is not None and alive(identity) and not suspended(identity)


def usage(identity: Identity) -> Usage | None:
    """Return what a process uses, None where it is dead."""
    try:
        pages = int(Path(f"/proc/{identity.pid}/statm").read_text().split()[1])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return None
    if not alive(identity):
        return None
    return Usage(pages * PAGE_BYTES, max(0.0, up - identity.start / CLOCK_TICKS))


def stop(identity: Identity, signals: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Send one signal after the other until the process is gone; a dead one is success.

    Each signal comes with the seconds that it is given to act. Returns False where the process
    outlived them all.
    """
    for number, seconds in signals:
        if not _send(identity, number):
            return True
        if waiting.until(lambda: _gone(identity), seconds=seconds, every=0.01):
            return True
    return not alive(identity)


def boot_id() -> str:
    """Return the kernel's id of this boot. Raises SetupError where there is no /proc."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        raise SetupError(
            "the local control plane needs Linux with /proc, and there is none here",
            hint="use a cluster: --kubeconfig FILE",
        ) from None


def machine() -> str:
    """Return what tells this machine from others after a reboot too: host name and machine id.

    The name as well, since copies of a virtual machine often share the id (machine-id(5)).
    """
    try:
        number = Path("/etc/machine-id").read_text().strip()
    except OSError:
        number = ""
    return f"{os.uname().nodename} {number}".strip()


def namespace() -> str:
    """Return the name of this process's pid namespace, such as `pid:[4026531836]`."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def started_here(identity: Identity | None) -> bool:
    """Say whether this very command started that process."""
    return identity is not None and identity.pid in {child.pid for child in _children}


def reap() -> None:
    """Collect the exit status of children that ended, so that none stays a zombie of ours."""
    _children[:] = [child for child in _children if child.poll() is None]


def _gone(identity: Identity) -> bool | None:
    reap()
    return None if alive(identity) else True


def _send(identity: Identity, number: signal.Signals) -> bool:
    """Signal exactly that process; False where it is gone."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except (AttributeError, OSError):
        return _send_by_pid(identity, number)
    try:
        if not alive(identity):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def _send_by_pid(identity: Identity, number: signal.Signals) -> bool:
    """Signal by pid where the kernel has no pidfd (before Linux 5.3), right after a look."""
    if not alive(identity):
        return False
    try:
        os.kill(identity.pid, number)
    except ProcessLookupError:
        return False
    return True


def _stat_of(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None


def _fields(stat: str) -> list[str]:
    """Return the fields from the state on: the name before it may hold blanks and brackets."""
    return stat.rpartition(")")[2].split()


def _state_of(stat: str) -> str:
    return _fields(stat)[0]


def _start_of(stat: str) -> int:
    return int(_fields(stat)[19])


def _executable_of(pid: int) -> str | None:
    """Return the file a process runs, also when that file was deleted since; None where that is secret.

    It is empty where there is no such process any more.
    """
    try:
        return str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    except PermissionError:
        return None
    except OSError:
        return ""
