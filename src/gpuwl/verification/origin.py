"""Where an attempt's files come from, as far as out/run.json knows."""

from typing import Any

from gpuwl.errors import SetupError
from gpuwl.lab import runfile
from gpuwl.lab.artifacts import Artifacts
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings, Remark, shown


def same_target(attempt: Attempt, number: int) -> Findings:
    """Check that a step's files were made on the target that is verified.

    A record says nothing once the files are no longer those that it tells of. Another kind of
    target is a difference. Another address of the same kind is a remark, since a cluster has
    several and a local control plane gets a new one at each start.
    """
    record = _record(attempt.artifacts, number)
    made_on = record.get("target")
    if not isinstance(made_on, dict) or not _tells_of(attempt.artifacts, record):
        return
    here = attempt.target
    found = _words(made_on.get("kind"), made_on.get("name"), made_on.get("server"))
    if made_on.get("kind") != here.kind:
        expected = _words(here.kind, here.name, here.server)
        yield Difference(f"origin of step {number}'s files ({runfile.PATH})", expected, found)
    elif made_on.get("server") != here.server:
        yield Remark(f"step {number}'s files were made on {found}")


def _record(artifacts: Artifacts, number: int) -> dict[str, Any]:
    steps = (runfile.read(artifacts) or {}).get("steps")
    records = steps if isinstance(steps, list) else []
    found = (r for r in records if isinstance(r, dict) and r.get("number") == number)
    return next(found, {})


def _tells_of(artifacts: Artifacts, record: dict[str, Any]) -> bool:
    files = record.get("files")
    if not isinstance(files, dict) or not files:
        return False
    try:
        return all(artifacts.digest(str(name)) == digest for name, digest in files.items())
    except SetupError:
        return False


def _words(kind: object, name: object, server: object) -> str:
    noun = "local control plane" if kind == "local" else "cluster"
    return shown(f"{noun} {name}, {server}")
