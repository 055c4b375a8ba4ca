"""The installed checker (step 8), whatever it is written in: how it answers known dumps.

It runs on the attempt's dump, whose verdict is known from judging its nodes here, and on three bad
dumps, whose verdicts the checker's rules fix. No cluster is within its reach, as it judges files alone.
"""

import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuwl import checker
from gpuwl.errors import SetupError
from gpuwl.lab import verdict
from gpuwl.lab.names import DEVICE_MODEL, GPU, LABEL_KEY, VGPU_PROFILE
from gpuwl.steps import s8_consistency
from gpuwl.verification import dump, files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings, shown

SCRIPT = s8_consistency.SCRIPT
OUTPUT = s8_consistency.OUTPUT


@dataclass(frozen=True)
class Answer:
    """Exit code, and the lines of standard output up to the first blank of each."""

    code: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        """Say both in words."""
        return f"exit {self.code}, {shown(' '.join(self.lines)) or 'nothing on standard output'}"


REFUSED = Answer(2, ())


@dataclass(frozen=True)
class Case:
    """A dump and the answer to it."""

    name: str
    content: str
    answer: Answer


def answers(attempt: Attempt) -> Findings:
    """Check the script's answers, and that consistency.txt is its answer to the dump."""
    script = attempt.artifacts.path(SCRIPT)
    if not script.is_file():
        yield files.missing(SCRIPT)
        yield from files.follows_rules(attempt.artifacts, OUTPUT)
        return
    if not script.stat().st_mode & 0o111:
        mend = f"chmod 755 {shlex.quote(str(script))}"
        yield Difference(SCRIPT, "a program (mode 0755)", "a file that may not be run", mend)
        yield from files.follows_rules(attempt.artifacts, OUTPUT)
        return
    # a script that cannot be run says so once
    yield from dict.fromkeys(_answers(attempt, _Asking(script, attempt.timeout)))


def _answers(attempt: Attempt, asking: "_Asking") -> Findings:
    for case in bad_dumps():
        yield from asking.about(case)
    yield from _about_own_dump(attempt, asking)


def bad_dumps() -> list[Case]:
    """Return nodes that disagree, a dump that breaks off, and the API server's refusal."""
    nodes = [
        _node("agrees", "container", {GPU: "4"}),
        _node("moved", "container", {DEVICE_MODEL: "2"}),
        _node("none-left", "vm-vgpu", {VGPU_PROFILE: "0"}),
        _node("several", "vm-passthrough", {DEVICE_MODEL: "2", GPU: "1"}),
        _node("misspelt", "vm-gpu", {VGPU_PROFILE: "4"}),
    ]
    bad = tuple(f"MISMATCH={name}" for name in ("moved", "none-left", "several", "misspelt"))
    listing = _list(nodes)
    refusal = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403}
    return [
        Case("nodes that disagree", listing, Answer(1, bad)),
        Case("a dump that is cut off in its last node", listing[: -len(listing) // 10], REFUSED),
        Case("a Status in place of nodes", json.dumps(refusal, indent=4), REFUSED),
    ]


def _about_own_dump(attempt: Attempt, asking: "_Asking") -> Findings:
    data = files.read(attempt.artifacts, s8_consistency.DUMP)
    document = dump.decoded(data) if data is not None else None
    expected = _judged(dump.nodes_of(document)) if document is not None else None
    if data is None or expected is None:  # told by the dump's own check
        yield from files.follows_rules(attempt.artifacts, OUTPUT)
        return
    yield from _agreement(attempt, expected)
    run = asking.run(data)
    if isinstance(run, Difference):
        yield run
    elif answer(run) != expected:
        yield Difference(f"{SCRIPT} on {s8_consistency.DUMP}", str(expected), str(answer(run)))
    else:
        yield from files.compare(attempt.artifacts, OUTPUT, run.output)
        return
    yield from _verdict_lines(attempt, expected)


def _judged(nodes: Sequence[dict[str, Any]]) -> Answer | None:
    try:
        verdicts = [verdict for node in nodes if (verdict := checker.judge(node)) is not None]
    except checker.ItemError:
        return None
    bad = tuple(f"MISMATCH={checker.shown(one.node)}" for one in verdicts if one.reason)
    return Answer(1, bad) if bad else Answer(0, (f"OK={len(verdicts)}",))


def _agreement(attempt: Attempt, expected: Answer) -> Findings:
    """Check that all labelled nodes agree, as the lab leaves them."""
    if expected.code:
        names = {line.removeprefix("MISMATCH=") for line in expected.lines}
        own = names <= {node.name for node in attempt.nodes}
        mend = (
            f"{attempt.gpuwl} run --from 1 --to 8" if own else "kubectl get nodes -L " + LABEL_KEY
        )
        yield Difference("labels and resources in the dump", "agreement", str(expected), mend)


def _verdict_lines(attempt: Attempt, expected: Answer) -> Findings:
    """Compare consistency.txt without its reasons, where the script cannot say what it should be."""
    yield from files.follows_rules(attempt.artifacts, OUTPUT)
    text = files.text(attempt.artifacts, OUTPUT)
    if text is not None and _heads(text) != expected.lines:
        found = shown(" ".join(_heads(text))) or "nothing"
        yield Difference(OUTPUT, " ".join(expected.lines), found)


@dataclass
class _Asking:
    """Runs the script, each time in a new folder; one that failed to run or to end is not run again."""

    script: Path
    timeout: float
    _failure: Difference | None = None

    def about(self, case: Case) -> Iterator[Difference]:
        """Run the script on a case's dump and compare."""
        run = self.run(case.content.encode())
        if isinstance(run, Difference):
            yield run
        elif answer(run) != case.answer:
            yield Difference(f"{SCRIPT} on {case.name}", str(case.answer), str(answer(run)))

    def run(self, content: bytes) -> verdict.Verdict | Difference:
        """Run the script on a copy of a dump, which it may spoil."""
        try:
            return self._failure or self._run(content)
        except SetupError as error:
            self._failure = Difference(SCRIPT, "a program that judges a dump", shown(error.message))
            return self._failure

    def _run(self, content: bytes) -> verdict.Verdict:
        with tempfile.TemporaryDirectory(
            prefix="gpuwl-verify-", ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder, "nodes.json")
            path.write_bytes(content)
            return verdict.of(
                self.script,
                path,
                limit=self.timeout,
                folder=Path(folder),
                environment=_no_cluster(),
            )


def answer(run: verdict.Verdict) -> Answer:
    """Return what a run answered, its reasons left out."""
    return Answer(run.code, _heads(run.output))


def _heads(output: str) -> tuple[str, ...]:
    return tuple(line.split(" ")[0] for line in output.removesuffix("\n").split("\n") if output)


def _no_cluster() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KUBERNETES_SERVICE_")}
    return {**kept, "KUBECONFIG": os.devnull}


def _node(name: str, value: str, resources: dict[str, str]) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **resources}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"labels": {LABEL_KEY: value, "kubernetes.io/hostname": name}, "name": name},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _list(nodes: Sequence[dict[str, Any]]) -> str:
    listing = {"apiVersion": "v1", "items": list(nodes), "kind": "List", "metadata": {}}
    return json.dumps(listing, indent=4) + "\n"
