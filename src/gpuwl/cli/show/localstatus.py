"""Rendering of `gpuwl local status` and `gpuwl local logs`."""

import select
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpuwl.errors import ReaderGone

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter
    from gpuwl.controlplane.logs import Line
    from gpuwl.controlplane.status import ComponentStatus, Status

STDOUT = 1


def data(status: "Status") -> dict[str, Any]:
    """Return a status as the JSON document shows it: memory in bytes, times in seconds."""
    return asdict(status)


def print_status(reporter: "Reporter", status: "Status") -> None:
    """Print one control plane for people."""
    reporter.result(_headline(status), style="bold")
    if status.message:
        reporter.result(f"  {status.message}")
    if not status.components:
        return
    facts = {"folder": status.folder, "kubeconfig": status.kubeconfig}
    if status.nodes is not None:  # it did come up
        of = f" of {status.dump}" if status.dump else ""
        facts = {"nodes": f"{status.nodes}{of}", **facts}
    for name, fact in facts.items():
        reporter.result(f"  {name:<11}{fact}")
    for component in () if status.phase == "elsewhere" else status.components:
        reporter.result(f"  {component.name:<15} {_state(component)}")


def _headline(status: "Status") -> str:
    facts = [f"{status.name}: {status.phase}"]
    if status.version:
        facts.append(f"Kubernetes {status.version} from {status.source}")
    if status.port:
        facts.append(f"https://127.0.0.1:{status.port}")
    if status.uptime is not None:
        facts.append(f"up {_duration(status.uptime)}")
    if status.memory:
        facts.append(f"{status.memory / 1e6:.0f} MB")
    return ", ".join(facts)


def _state(component: "ComponentStatus") -> str:
    if component.alive:
        return f"{component.version or ''}  pid {component.pid}  {(component.memory or 0) / 1e6:.0f} MB"
    return f"does not run: {component.why()}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def print_lines(reporter: "Reporter", lines: "Iterable[Line]", *, with_names: bool) -> None:
    """Print log lines as they come."""
    for line in lines:
        prefix = f"{line.component}: " if with_names else ""
        reporter.raw(f"{prefix}{line.text}\n")


def check_reader() -> None:
    """Raise ReaderGone where standard output is a pipe that nobody reads any more.

    Otherwise only a write would tell (`gpuwl local logs -f | head -1`), and a quiet log has none.
    """
    poll = select.poll()
    poll.register(STDOUT, 0)  # POLLERR comes unasked, poll(2)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise ReaderGone
