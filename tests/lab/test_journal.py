"""The journal: the first value wins, nothing is forgotten, nothing is written in vain."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwl.errors import SetupError
from gpuwl.lab.changes import label_changes, resource_changes
from gpuwl.lab.journal import THE_NAMESPACE, Change, Journal, pod_key
from gpuwl.lab.names import LABEL_KEY, lab_nodes

LABEL = "labels"


def node(uid: str = "1", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "n", "uid": uid, "labels": labels}, "status": {}}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.json", "https://127.0.0.1:6443")


def read_again(journal: Journal) -> Journal:
    again = Journal(journal.path, journal.server)
    again.take(json.loads(journal.path.read_bytes()))
    return again


def test_it_is_written_before_the_change(journal: Journal) -> None:
    journal.before(node(), [Change(LABEL, "k", None, "a")])
    (value,) = read_again(journal).values
    assert (value.node, value.uid, value.field, value.name) == ("n", "1", LABEL, "k")
    assert (value.was, value.ours) == (None, ["a"])
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_the_first_value_wins_and_all_of_ours_are_known(journal: Journal) -> None:
    journal.before(node(k="theirs"), [Change(LABEL, "k", "theirs", "a")])
    again = read_again(journal)
    again.before(node(k="a"), [Change(LABEL, "k", "a", "b")])
    again.before(node(k="b"), [Change(LABEL, "k", "b", "a")])
    (value,) = read_again(again).values
    assert (value.was, value.ours) == ("theirs", ["a", "b"])


def test_a_node_made_anew_has_no_past(journal: Journal) -> None:
    journal.before(node("1", k="theirs"), [Change(LABEL, "k", "theirs", "a")])
    journal.before(node("2"), [Change(LABEL, "k", None, "a")])
    (value,) = read_again(journal).values
    assert (value.uid, value.was) == ("2", None)


def gpus(label: str | None, **amounts: str) -> dict[str, Any]:
    """A node with a workload label and GPU resources of these amounts."""
    labels = {LABEL_KEY: label} if label else {}
    found = {f"nvidia.com/{name}": amount for name, amount in amounts.items()}
    status = {"capacity": found, "allocatable": found}
    return {**node(**labels), "status": status}


def changes(found: dict[str, Any]) -> list[Change]:
    return [*label_changes(found, lab_nodes()[0]), *resource_changes(found, lab_nodes()[0])]


def before_of(journal: Journal) -> dict[str, str | None]:
    """What a reset would give back, of label and capacity."""
    values = [v for v in journal.values if v.field != "allocatable"]
    return {v.name.removeprefix("nvidia.com/"): v.was for v in values}


LABEL_NAME = LABEL_KEY.removeprefix("nvidia.com/")


@pytest.mark.parametrize(
    ("by_hand", "before"),
    [
        (gpus("container", gpu="4"), {LABEL_NAME: None, "gpu": "8"}),
        (gpus("container", gpu="8"), {LABEL_NAME: None, "gpu": "8"}),
        (gpus(None, gpu="4"), {LABEL_NAME: None, "gpu": "8"}),
        (gpus("before", old="3"), {LABEL_NAME: "before", "old": "3", "gpu": None}),
        (gpus("before", gpu="4"), {LABEL_NAME: "before", "gpu": "4"}),
        (gpus("container", gpu="4", old="3"), {LABEL_NAME: "container", "gpu": "4", "old": "3"}),
        (gpus("container", gpu="6"), {LABEL_NAME: "container", "gpu": "6"}),
    ],
    ids=["nothing", "taken back", "half taken back", "all", "label", "one more", "amount"],
)
def test_what_somebody_set_between_two_runs_is_what_comes_back_as_a_whole(
    by_hand: dict[str, Any], before: dict[str, str | None], journal: Journal
) -> None:
    for found in (gpus(None, gpu="8"), by_hand):
        journal.before(found, changes(found))
    assert before_of(read_again(journal)) == before


def test_a_resource_that_a_kubelet_set_to_zero_is_nobodys_change(journal: Journal) -> None:
    for found in (gpus(None), gpus("container", gpu="0")):
        journal.before(found, changes(found))
    assert before_of(journal) == {LABEL_NAME: None, "gpu": None}


def test_what_did_not_change_is_not_written_again(journal: Journal) -> None:
    journal.before(node(), [Change(LABEL, "k", None, "a")])
    journal.path.unlink()
    journal.before(node(), [Change(LABEL, "k", None, "a")])
    journal.before(node(), [])
    assert not journal.path.exists()


def test_an_empty_journal_is_no_file(journal: Journal) -> None:
    journal.will_make(THE_NAMESPACE)
    assert journal.path.exists()
    journal.made.clear()
    journal.save()
    assert not journal.path.exists()


def made(uid: str, manager: str = "kubectl") -> dict[str, Any]:
    return {"metadata": {"name": "p", "uid": uid, "managedFields": [{"manager": manager}]}}


def test_ours_is_the_very_object_that_we_made(journal: Journal) -> None:
    journal.will_make(pod_key("p"))
    journal.has_made(pod_key("p"), made("1"))
    assert journal.is_ours(pod_key("p"), made("1"))
    assert not journal.is_ours(pod_key("p"), made("2", "gpuwl"))
    assert not journal.is_ours(pod_key("q"), made("1"))


def test_where_the_answer_got_lost_the_field_manager_tells(journal: Journal) -> None:
    journal.will_make(pod_key("p"))
    again = read_again(journal)
    assert again.is_ours(pod_key("p"), made("1", "gpuwl"))
    assert not again.is_ours(pod_key("p"), made("1", "kubectl"))


def test_a_removed_object_of_ours_is_no_loss(journal: Journal) -> None:
    journal.will_make(pod_key("p"))
    journal.has_made(pod_key("p"), made("1"))
    journal.will_remove(pod_key("p"), made("1"))
    assert not journal.removed
    for _ in range(2):
        journal.will_remove(pod_key("p"), made("2"))
    assert read_again(journal).removed == [{"object": "Pod/p", "uid": "2"}]


def test_a_journal_that_cannot_be_written_stops_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "missing" / "journal.json", "https://127.0.0.1:6443")
    with pytest.raises(SetupError, match="cannot write the journal"):
        journal.before(node(), [Change(LABEL, "k", None, "a")])


def test_only_what_differs_is_a_change() -> None:
    lab_node = lab_nodes()[0]
    status = {"capacity": {"nvidia.com/gpu": "8", "cpu": "1"}, "allocatable": {"nvidia.com/x": "1"}}
    found = {"metadata": {"labels": {LABEL_KEY: "container"}}, "status": status}
    assert label_changes(found, lab_node) == []
    assert [str(change) for change in resource_changes(found, lab_node)] == [
        "capacity nvidia.com/gpu: 8 -> 4",
        "allocatable nvidia.com/gpu: none -> 4",
        "allocatable nvidia.com/x: 1 -> none",
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"made": {"x": "1"}},
        {"made": {"Pod/../../nodes/n": "1"}},
        {"made": {"Pod/p": 1}},
        {"made": None},
        {"removed": ["x"]},
        {"removed": [{"object": "Pod/p"}]},
        {"values": [{"node": "n"}]},
        {"values": [dict.fromkeys(("node", "uid", "field", "name", "was", "ours"))]},
        {"values": [{"node": "n", "uid": "1", "field": "f", "name": "k", "was": None, "ours": []}]},
        {"version": 2},
    ],
    ids=str,
)
def test_what_gpuwl_did_not_write_is_not_taken(part: dict[str, Any], journal: Journal) -> None:
    document = {"version": 1, "made": {}, "values": [], "removed": [], **part}
    with pytest.raises((ValueError, TypeError, KeyError)):
        journal.take(document)
