"""`gpuwl local clean`: what would go is said first, and what runs is left alone."""

import sys

import click

from gpuwl.cli.app import App
from gpuwl.controlplane import plane
from gpuwl.controlplane.binaries import cache, cachewriter
from gpuwl.errors import SetupError

AGAIN = "The next start has to get them again: a download, or a build of about 7 minutes and 5 GB."


def clean(app: App) -> int:
    """Empty the cache, once that was agreed to. Raises SetupError where nobody did, or a plane runs."""
    found = cachewriter.contents()
    app.payload |= {"binaries": [one._asdict() for one in found], "freedBytes": 0}
    if not found:
        app.reporter.result("the cache is empty")
        return 0
    _refuse_running()
    if app.settings.yes or _agreed(app, [f"{one.what}: {_size(one.size)}" for one in found]):
        with app.reporter.moving("removing"):
            app.payload["freedBytes"] = cachewriter.clean(app.reporter)
        app.reporter.result(f"freed {_size(app.payload['freedBytes'])}")
    else:
        app.reporter.result("nothing was removed")
    return 0


def _refuse_running() -> None:
    names = plane.running_from(cache.store())
    if names:
        raise SetupError(
            f"the cached binaries are in use by the local control plane {', '.join(names)}",
            hint="look at it: gpuwl local status --all",
        )


def _agreed(app: App, lines: list[str]) -> bool:
    if app.reporter.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SetupError(
            "nothing was removed: there is no terminal to ask on",
            details=[*lines, AGAIN],
            hint="add --yes to remove them",
        )
    for line in ("This would be removed:", *(f"  {line}" for line in lines), AGAIN):
        app.reporter.note(line)
    return click.confirm("Remove it?", err=True)


def _size(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
