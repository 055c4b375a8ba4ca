"""JUnit XML of verify, the origin of files, and which command mends a step."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.lab_fixtures import unanswered

from gpuwl import findings, texts
from gpuwl.errors import ClusterError
from gpuwl.findings import Finding, Severity, TestCase
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import lab_nodes
from gpuwl.lab.runfile import RunFile, StepRecord
from gpuwl.steps import STEPS
from gpuwl.target.connection import TargetRecord
from gpuwl.verification import assess, origin, requirements
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Outcome, Result, Told

LOCAL = TargetRecord("local", "default", "https://127.0.0.1:1000", "v1.37.2")
CLUSTER = TargetRecord("cluster", "prod", "https://10.0.0.1:6443", "v1.37.2")
EVERY_BYTE = "".join(map(chr, [*range(0x20, 0x7F), 0xE000, 0xFFFE, 0xFFFF, 0x1F600]))


def test_every_step_has_its_checks() -> None:
    assert list(assess.CHECKS) == [step.number for step in STEPS]


WORDS = {"expected": "expected", "found": "found", "fix": "try"}


def test_junit_is_well_formed_whatever_was_found() -> None:
    nasty = EVERY_BYTE + "\x00\x1b[2J]]>\ud800&<"
    wrong = Finding("x", nasty, nasty, expected=nasty, found=nasty, fix=nasty)
    note = Finding("x", nasty, nasty, Severity.NOTE)
    cases = [
        TestCase("ok", 0.5, notes=[nasty]),
        TestCase("differs", 0.25, [wrong, wrong, note], obstacle=[nasty]),
        TestCase("unknown", 0, obstacle=[nasty, nasty]),
        TestCase("note", 0, [note]),
    ]
    document = findings.junit("gpuwl verify", cases, {"root": nasty}, WORDS)
    document.encode()
    suites = ET.fromstring(document)  # noqa: S314 - our own output
    (suite,) = suites
    counts = ("4", "1", "1", "0.750")
    assert tuple(suite.attrib[key] for key in ("tests", "failures", "errors", "time")) == counts
    tags = [[child.tag for child in case] for case in suite.findall("testcase")]
    assert tags == [["system-out"], ["failure"], ["error"], []]
    assert "(+1)" in suite.findall("testcase/failure")[0].attrib["message"]


def outcome(slug: str, *found: Finding, **more: object) -> Outcome:
    return Outcome(1, slug, "", findings=found, **more)  # type: ignore[arg-type]


def test_a_difference_outweighs_what_cannot_be_told() -> None:
    wrong = Finding("labels.nodes", "", "")
    unsure = Finding("labels.nodes", "", "", Severity.WARNING)
    note = Finding("labels.nodes", "", "", Severity.NOTE)
    right, unknown = outcome("labels", note), outcome("labels", obstacle=ClusterError("x"))
    differs = outcome("labels", wrong, unsure, obstacle=ClusterError("x"))
    assert outcome("labels", unsure).result is Result.UNKNOWN
    assert assess.verdict([right, unknown, differs]) is Result.DIFFERS
    assert assess.verdict([right, unknown]) is Result.UNKNOWN
    assert assess.verdict([right]) is Result.OK


def test_points_say_of_each_requirement_what_is_known() -> None:
    moot = outcome("labels", Finding("labels.nodes", "", ""), moot=("labels.file",))
    assert list(map(str, moot.points().values())) == ["ok", "ok", "differs", "differs"]
    unknown = outcome("labels", Finding("labels.nodes", "", ""), obstacle=ClusterError("x"))
    assert list(map(str, unknown.points().values())) == ["unknown", "unknown", "differs", "unknown"]


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_every_requirement_has_words_of_its_own_in_a_step(language: str) -> None:
    texts.use(language)
    try:
        for step in STEPS:
            words = [requirements.in_words(one) for one in requirements.of(step.slug)]
            assert len(set(words)) == len(words) > 1
    finally:
        texts.use("en")


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path)


def verified(artifacts: Artifacts, target: TargetRecord) -> list[Told]:
    cluster = unanswered(target.server)
    attempt = Attempt(cluster, artifacts, lab_nodes(), target, 1, artifacts.root / "kept", 1)
    return list(origin.same_target(attempt, STEPS[0]))


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
    assert isinstance(found, Finding)
    assert found.severity is Severity.ERROR
    assert found.expected == "cluster prod, https://10.0.0.1:6443"
    assert found.found == "local control plane default, https://127.0.0.1:1000"


def test_another_address_of_the_same_kind_is_remarked(artifacts: Artifacts) -> None:
    made_on(artifacts, LOCAL)
    later = TargetRecord("local", "default", "https://127.0.0.1:2000", "v1.37.2")
    (found,) = verified(artifacts, later)
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE


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
