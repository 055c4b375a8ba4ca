"""JUnit XML of verify, the origin of files, and which command mends a step."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.lab_fixtures import unanswered

from gpuwl.errors import ClusterError
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import lab_nodes
from gpuwl.lab.runfile import RunFile, StepRecord
from gpuwl.steps import STEPS
from gpuwl.target.connection import TargetRecord
from gpuwl.verification import assess, junit, origin
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Evidence, Outcome, Remark, Result

LOCAL = TargetRecord("local", "default", "https://127.0.0.1:1000", "v1.37.2")
CLUSTER = TargetRecord("cluster", "prod", "https://10.0.0.1:6443", "v1.37.2")
EVERY_BYTE = "".join(map(chr, [*range(0x20, 0x7F), 0xE000, 0xFFFE, 0xFFFF, 0x1F600]))


def test_every_step_has_its_checks() -> None:
    assert list(assess.CHECKS) == [step.number for step in STEPS]


def test_junit_is_well_formed_whatever_was_found() -> None:
    nasty = EVERY_BYTE + "\x00\x1b[2J]]>\ud800&<"
    outcomes = [
        Outcome(1, "a", "holds", 0.5, evidence=(Evidence("p", "n", "event", nasty),)),
        Outcome(2, "b", "differs", 0.25, differences=(Difference(nasty, nasty, nasty, nasty),) * 2),
        Outcome(3, "c", "unknown", obstacle=ClusterError(nasty, details=[nasty], hint=nasty)),
        Outcome(4, "d", "remark", remarks=(Remark(nasty),)),
    ]
    document = junit.render(outcomes, {"root": nasty})
    document.encode()
    suites = ET.fromstring(document)  # noqa: S314 - our own output
    (suite,) = suites
    counts = ("4", "1", "1", "0.750")
    assert tuple(suite.attrib[key] for key in ("tests", "failures", "errors", "time")) == counts
    cases = suite.findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [
        ["system-out"], ["failure"], ["error"], ["system-out"]
    ]  # fmt: skip
    assert "and 1 more" in suite.findall("testcase/failure")[0].attrib["message"]


def test_a_difference_outweighs_what_cannot_be_told() -> None:
    holds, unknown = Outcome(1, "", ""), Outcome(2, "", "", obstacle=ClusterError("x"))
    differs = Outcome(3, "", "", differences=(Difference("", "", ""),))
    assert assess.verdict([holds, unknown, differs]) is Result.DIFFERS
    assert assess.verdict([holds, unknown]) is Result.UNKNOWN
    assert assess.verdict([holds]) is Result.HOLDS


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path)


def verified(artifacts: Artifacts, target: TargetRecord) -> list[object]:
    cluster = unanswered(target.server)
    attempt = Attempt(cluster, artifacts, lab_nodes(), target, timeout=1)
    return list(origin.same_target(attempt, 1))


def made_on(artifacts: Artifacts, target: TargetRecord) -> None:
    artifacts.write("out/01-nodes.txt", "x\n")
    record = StepRecord.begin(1, "labels", "2026-01-01T00:00:00Z")
    files = {"out/01-nodes.txt": artifacts.digest("out/01-nodes.txt")}
    RunFile(artifacts, target).put(record.done(files, 0.1))


def test_files_of_the_same_target_are_fine(artifacts: Artifacts) -> None:
    made_on(artifacts, LOCAL)
    assert verified(artifacts, LOCAL) == []


def test_files_of_a_local_run_do_not_pass_for_a_cluster_s(artifacts: Artifacts) -> None:
    made_on(artifacts, LOCAL)
    (found,) = verified(artifacts, CLUSTER)
    assert isinstance(found, Difference)
    assert found.expected == "cluster prod, https://10.0.0.1:6443"
    assert found.found == "local control plane default, https://127.0.0.1:1000"


def test_another_address_of_the_same_kind_is_remarked(artifacts: Artifacts) -> None:
    made_on(artifacts, LOCAL)
    later = TargetRecord("local", "default", "https://127.0.0.1:2000", "v1.37.2")
    (found,) = verified(artifacts, later)
    assert isinstance(found, Remark)


@pytest.mark.parametrize("content", ["by hand\n", None])
def test_a_record_of_other_files_says_nothing(artifacts: Artifacts, content: str | None) -> None:
    made_on(artifacts, LOCAL)
    if content is None:
        artifacts.remove("out/01-nodes.txt")
    else:
        artifacts.write("out/01-nodes.txt", content)
    assert verified(artifacts, CLUSTER) == []


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 1, "steps": 7}', '{"version": 1, "steps": [7, {"number": 1}]}']
)
def test_a_broken_record_says_nothing(artifacts: Artifacts, text: str) -> None:
    artifacts.write("out/run.json", text)
    assert verified(artifacts, CLUSTER) == []
