"""out/run.json: records of other steps stay, and whatever else is there is no obstacle."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwl import __version__
from gpuwl.lab import runfile
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.runfile import RunFile, StepRecord
from gpuwl.target.connection import TargetRecord

LOCAL = TargetRecord("local", "default", "https://127.0.0.1:1", "v1.37.2")
CLUSTER = TargetRecord("cluster", "prod", "https://example.com", "v1.36.0")
BEGUN = "2026-01-01T00:00:00.000+00:00"


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path)


def document(artifacts: Artifacts) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(artifacts.path("out/run.json").read_text())
    return loaded


def done(number: int, **files: str) -> StepRecord:
    return StepRecord.begin(number, f"step {number}", BEGUN).done(files, 0.12345)


def test_a_record_goes_from_running_to_done(artifacts: Artifacts) -> None:
    run_file = RunFile(artifacts, LOCAL)
    record = StepRecord.begin(1, "title", BEGUN)
    run_file.put(record)
    assert document(artifacts)["steps"][0]["result"] == "running"
    run_file.put(record.done({"out/a": "sha256:1"}, 0.12345))
    told = document(artifacts)
    assert told["version"] == 1
    assert told["gpuwl"] == __version__
    target = {
        "kind": "local",
        "name": "default",
        "server": "https://127.0.0.1:1",
        "kubernetes": "v1.37.2",
    }
    assert told["target"] == target
    assert told["steps"] == [
        {
            "number": 1,
            "title": "title",
            "startedAt": BEGUN,
            "seconds": 0.123,
            "result": "done",
            "error": None,
            "files": {"out/a": "sha256:1"},
            "target": target,
        }
    ]


def test_a_failure_is_kept_with_its_message(artifacts: Artifacts) -> None:
    record = StepRecord.begin(4, "title", BEGUN)
    RunFile(artifacts, LOCAL).put(record.failed("no node", 30.0004))
    (kept,) = document(artifacts)["steps"]
    assert (kept["result"], kept["error"], kept["seconds"]) == ("failed", "no node", 30.0)


def test_records_of_other_steps_stay_and_are_in_order(artifacts: Artifacts) -> None:
    for number in (7, 1, 3):
        RunFile(artifacts, LOCAL).put(done(number))
    assert [step["number"] for step in document(artifacts)["steps"]] == [1, 3, 7]


def test_a_step_takes_the_place_of_its_earlier_record(artifacts: Artifacts) -> None:
    RunFile(artifacts, LOCAL).put(done(1, old="sha256:1"))
    RunFile(artifacts, LOCAL).put(done(1, new="sha256:2"))
    (kept,) = document(artifacts)["steps"]
    assert kept["files"] == {"new": "sha256:2"}


def test_each_step_keeps_the_target_that_it_ran_on(artifacts: Artifacts) -> None:
    """So a file of a local run never passes for a real cluster's."""
    RunFile(artifacts, LOCAL).put(done(1))
    RunFile(artifacts, CLUSTER).put(done(2))
    told = document(artifacts)
    assert told["target"]["kind"] == "cluster"
    assert [step["target"]["kind"] for step in told["steps"]] == ["local", "cluster"]


def test_letters_of_all_languages_are_kept_readable(artifacts: Artifacts) -> None:
    RunFile(artifacts, TargetRecord("cluster", "실습", "https://x", "v1")).put(done(1))
    assert "실습" in artifacts.path("out/run.json").read_text(encoding="utf-8")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["version", "steps", "number", "files", "made", "target", "x"]), inner
        )
    ),
    max_leaves=12,
)
RECORDS = st.fixed_dictionaries({"version": st.just(1), "steps": JSON, "made": JSON})


@settings(max_examples=60, deadline=None)
@given(content=(JSON | RECORDS).map(lambda value: json.dumps(value).encode()) | st.binary())
def test_whatever_stands_there_is_no_obstacle(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    artifacts = Artifacts(tmp_path_factory.mktemp("root"))
    artifacts.write("out/run.json", content, durable=False)
    RunFile(artifacts, LOCAL).put(done(2, a="sha256:1"))
    kept = {step["number"]: step for step in document(artifacts)["steps"]}
    assert kept[2]["files"] == {"a": "sha256:1"}


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_document_of_another_version_is_not_read(version: object, artifacts: Artifacts) -> None:
    artifacts.write("out/run.json", json.dumps({"version": version, "steps": [{"number": 1}]}))
    assert runfile.read(artifacts) is None
