"""Where an attempt's files come from, as far as out/run.json knows."""

from typing import Any

from gpuwl.errors import SetupError
from gpuwl.findings import Finding, Severity, shown
from gpuwl.lab import runfile
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.step import Step
from gpuwl.texts import text
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Findings


def same_target(attempt: Attempt, step: Step) -> Findings:
    """Check that a step's files were made on the target that is verified.

    A record says nothing once the files are no longer those that it tells of. Another kind of
    target is a difference. Another address of the same kind is a note, since a cluster has
    several and a local control plane gets a new one at each start.
    """
    record = _record(attempt.artifacts, step.number)
    made_on = record.get("target")
    if not isinstance(made_on, dict) or not _tells_of(attempt.artifacts, record):
        return
    here = attempt.target
    other_kind = made_on.get("kind") != here.kind
    if other_kind or made_on.get("server") != here.server:
        yield Finding(
            f"{step.slug}.file",
            text("verify.files_of_step", step=step.number),
            text("verify.made_elsewhere"),
            Severity.ERROR if other_kind else Severity.NOTE,
            file=runfile.PATH,
            expected=_words(here.kind, here.name, here.server),
            found=_words(made_on.get("kind"), made_on.get("name"), made_on.get("server")),
        )


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
    key = "target_local" if kind == "local" else "target_cluster"
    return shown(text(f"verify.{key}", name=name, server=server))
