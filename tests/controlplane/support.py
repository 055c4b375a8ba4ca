"""What the tests of the local control plane look at: processes, sockets, commands to kill."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from gpuwl.controlplane import components, process, state
from gpuwl.system import waiting

UP = "import sys; from gpuwl.lab import local_plane; from gpuwl.system.progress import SILENCE; local_plane.ensure_up(sys.argv[1], listener=SILENCE)"


def silent(_line: str) -> None:
    """Take progress and drop it."""


def command(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start Python code in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def identity(name: str, component: str) -> process.Identity:
    """Return who a component is."""
    found = process.read_record(process.record_path(state.folder(name), component))
    assert found is not None
    return found


def kill(name: str, component: str) -> None:
    """Kill a component as if it had crashed, and wait until it is gone."""
    who = identity(name, component)
    assert process.alive(who)
    os.kill(who.pid, signal.SIGKILL)
    assert waiting.until(lambda: None if process.alive(who) else True, seconds=5)


def processes_in(folder: Path) -> list[str]:
    """Return the command lines of all processes that work in a folder, removed or not."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            where = str((entry / "cwd").readlink()).removesuffix(" (deleted)")
            line = (entry / "cmdline").read_text().replace("\0", " ")
            if Path(where).is_relative_to(folder) and line:  # empty once it is ending
                found.append(line)
        except OSError:
            continue
    return found


def assert_none_in(folder: Path) -> None:
    """Assert that no process works in a folder; one that was just killed has a moment to die.

    So has the launcher of a killed start that was not on record yet: it ends by itself.
    """
    assert waiting.until(lambda: not processes_in(folder) or None, seconds=5), processes_in(folder)


def sockets_of(pid: int) -> set[str]:
    """Return the inodes of a process's sockets."""
    links = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def listeners(name: str) -> list[tuple[str, str]]:
    """Return (`tcp`, `tcp6` or `unix`, address) of each socket the components listen on."""
    inodes: set[str] = set()
    for component in components.NAMES:
        inodes |= sockets_of(identity(name, component).pid)
    found = []
    for family in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            listening = fields[3] == "0A" or family.startswith("udp")
            if listening and fields[9] in inodes:
                found.append((family, fields[1]))
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        accepts = int(fields[3], 16) & 0x10000  # __SO_ACCEPTCON of the kernel
        if accepts and fields[6] in inodes:
            found.append(("unix", fields[7] if len(fields) > 7 else ""))
    return found
