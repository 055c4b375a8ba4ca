"""out/run.json: on which target, with which versions and how each step went.

The document, version 1:

    {"version": 1, "gpuwl": "0.1.0",
     "target": {"kind": "local" or "cluster", "name": …, "server": …, "kubernetes": "v1.37.2"},
     "made": [".", "out", …],
     "steps": [{"number": 1, "title": …, "startedAt": RFC 3339, "seconds": 0.031,
                "result": "done", "failed" or "running", "error": null or text,
                "files": {"out/01-nodes.txt": "sha256:…"}, "target": {…}}]}

A step's own target is the one it ran on; the document's is that of the last command. So a file made
on a local control plane never passes for a real cluster's. A file is recorded before it is written,
so whatever carries a recorded digest was written by gpuwl. `made` are the folders that gpuwl made,
the root as `.`.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from gpuwl import __version__
from gpuwl.lab.artifacts import Artifacts
from gpuwl.target.connection import TargetRecord

PATH = "out/run.json"
VERSION = 1


@dataclass(frozen=True)
class StepRecord:
    """How one step went; `seconds` is its duration, `files` maps paths to digests."""

    number: int
    title: str
    started_at: str
    result: Literal["running", "done", "failed"] = "running"
    seconds: float = 0.0
    error: str | None = None
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, number: int, title: str, started_at: str) -> Self:
        """Return the record of a step that begins now."""
        return cls(number, title, started_at)

    def done(self, files: dict[str, str], seconds: float) -> Self:
        """Return the record of the step once it went well."""
        return replace(self, result="done", files=files, seconds=round(seconds, 3))

    def failed(self, error: str, seconds: float) -> Self:
        """Return the record of the step once it failed."""
        return replace(self, result="failed", error=error, seconds=round(seconds, 3))

    def to_dict(self) -> dict[str, Any]:
        """Return the record as the document holds it."""
        fields = asdict(self)
        fields["startedAt"] = fields.pop("started_at")
        return fields


class RunFile:
    """Keeps the document true while steps run; records of other steps stay."""

    def __init__(self, artifacts: Artifacts, target: TargetRecord) -> None:
        self._artifacts = artifacts
        self._target = asdict(target)
        earlier = read(artifacts) or {}
        self._steps = {step["number"]: step for step in steps_of(earlier)}
        self._made = set(made_of(earlier))
        self._current = 0
        artifacts.before_write = self._expect

    def put(self, record: StepRecord) -> None:
        """Write the document with this record in place of the step's earlier one.

        Files of the earlier record are still there until the step is done.
        """
        fields = record.to_dict()
        if record.result != "done":
            fields["files"] = {**self._files(record.number), **record.files}
        self._steps[record.number] = {**fields, "target": self._target}
        self._current = record.number if record.result == "running" else 0
        self._write(durable=record.result != "running")

    def _expect(self, relative: str, digest: str) -> None:
        """Record a file of the running step before it is written."""
        files = self._files(self._current)
        if self._current and relative != PATH and files.get(relative) != digest:
            self._steps[self._current]["files"] = {**files, relative: digest}
            self._write(durable=False)

    def _files(self, number: int) -> dict[str, str]:
        return files_of(self._steps.get(number, {}))

    def _write(self, *, durable: bool) -> None:
        self._made |= set(self._artifacts.made)
        document = {
            "version": VERSION,
            "gpuwl": __version__,
            "target": self._target,
            "made": sorted(self._made),
            "steps": [self._steps[number] for number in sorted(self._steps)],
        }
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        self._artifacts.write(PATH, text, durable=durable)
        self._artifacts.made_is_recorded()


def read(artifacts: Artifacts) -> dict[str, Any] | None:
    """Return the document, None where there is none that can be read."""
    path = artifacts.path(PATH)
    try:
        # a named pipe would never end
        document = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    usable = isinstance(document, dict) and document.get("version") == VERSION
    return document if usable else None


def steps_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of steps in a document, whoever wrote it."""
    steps = document.get("steps")
    found = steps if isinstance(steps, list) else []
    return [
        step for step in found if isinstance(step, dict) and isinstance(step.get("number"), int)
    ]


def files_of(step: dict[str, Any]) -> dict[str, str]:
    """Return the files of a step's record with their digests."""
    files = step.get("files")
    return {str(k): str(v) for k, v in files.items()} if isinstance(files, dict) else {}


def made_of(document: dict[str, Any]) -> list[str]:
    """Return the folders that a document says were made."""
    made = document.get("made")
    return [str(name) for name in made] if isinstance(made, list) else []


def ran_on(artifacts: Artifacts, target: TargetRecord, numbers: Iterable[int]) -> bool:
    """Tell whether the files of these steps were all written on this target."""
    done = {
        step["number"]
        for step in steps_of(read(artifacts) or {})
        if step.get("result") == "done" and step.get("target") == asdict(target)
    }
    return set(numbers) <= done
