"""Properties that hold for every input, and agreement with an independent second opinion."""

import json
import random
from typing import Any

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.checker import second_opinion
from tests.checker.support import CASES, ENVIRONMENT, Result, chunks_of, run_main, run_script

LABELS = ["container", "vm-passthrough", "vm-vgpu"]
PARTS = ["gpu", "gpu.shared", "mig-1g.10gb", "mig-1g.10gb.shared", "NVIDIA_A10-12Q", "GRID_T4-2B4"]
PARTS += [
    "A100-1-5CME",
    "NVIDIA_A10-12q",
    "GRID_T4_2Q",
    "GA102GL_A10",
    "AD102GL_L40S",
    "26b5",
    "pgpu",
]
PARTS += [
    "mlnxnics",
    "vgpu-cores",
    "NVIDIA_A10-12",
    "mig-x-1Q",
    "",
    "gpux",
    "-1C",
    "x-3NOME",
    "x-3CME4",
]

names = st.one_of(
    st.sampled_from([f"nvidia.com/{part}" for part in PARTS]),
    st.from_regex(r"nvidia\.com/[A-Z]{1,3}-[0-9]{0,2}[A-Za-z]{0,5}4?", fullmatch=True),
    st.sampled_from(["cpu", "memory", "amd.com/gpu", "Nvidia.com/gpu", "nvidia.com.evil/gpu"]),
)
quantities = st.one_of(
    st.sampled_from(
        ["4", "0", 4, 0, "", None, "0k", "0.0", "1k", "-0", "1e3", "0E", "x", " 1", True]
    ),
    st.from_regex(r"[+-]?[0-2]{0,2}\.?[0-2]{0,2}([numkKMGTPE]i?|[eE][+-]?[0-9]?)?", fullmatch=True),
    st.integers(-3, 3),
    st.floats(-1, 1, allow_nan=False),
)
amounts = st.none() | st.dictionaries(names, quantities, max_size=4)
labels = st.one_of(
    st.sampled_from(LABELS),
    st.none(),
    st.sampled_from(["", "Container", "vm-gpu", 5, False]),
)
node_names = st.from_regex(r"[a-z][a-z0-9.-]{0,10}", fullmatch=True)
metadata = st.builds(
    lambda name, label, rest: {"name": name, "labels": rest and rest | {second_opinion.KEY: label}},
    node_names,
    labels,
    st.none() | st.just({"a": "b"}) | st.just({"nvidia.com/gpu": "1"}),
)
statuses = st.none() | st.fixed_dictionaries(
    {},
    optional={"allocatable": amounts, "capacity": amounts, "images": st.just([{"names": ["]}"]}])},
)
nodes = st.fixed_dictionaries(
    {"metadata": metadata, "status": statuses},
    optional={"kind": st.sampled_from(["Node", "Node", None]), "apiVersion": st.just("v1")},
)
strangers = st.fixed_dictionaries(
    {"kind": st.sampled_from(["Pod", "NodeClaim"]), "metadata": metadata}
)
lists: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"items": st.lists(nodes, min_size=1, max_size=6)},
    optional={"kind": st.sampled_from(["List", "NodeList", None]), "metadata": st.just({})},
)
patterns = st.sampled_from(["nvidia.com/mig-*", "nvidia.com/gpu*", "*", "nvidia.com/?????", "x"])
accepts = st.lists(st.tuples(st.sampled_from(LABELS), patterns), max_size=2)
ignores = st.lists(patterns, max_size=2)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def examples(count: int) -> settings:
    """Return settings that do not fail on a busy machine."""
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_contract(result: Result) -> None:
    """Whatever came in: the exit code, and what belongs to it on each stream."""
    assert result.code in (0, 1, 2)
    assert result.out.isascii()
    assert result.err.isascii()
    assert "Traceback" not in result.err
    assert "bug" not in result.err
    lines = result.out.splitlines()
    if result.code == 2:
        assert result.out == ""
        assert result.err.count("\n") == 1
    elif result.code == 1:
        assert lines
        assert all(line.startswith("MISMATCH=") for line in lines)
    else:
        assert len(lines) == 1
        assert lines[0].removeprefix("OK=").isdecimal()
    if result.code != 2:
        assert all(w.startswith("check-config: warning: ") for w in result.err.splitlines())


def options(accept: list[tuple[str, str]], ignore: list[str]) -> list[str]:
    given = [f"--accept={value}={pattern}" for value, pattern in accept]
    return given + [f"--ignore={pattern}" for pattern in ignore]


@examples(200)
@given(lists, accepts, ignores, st.sampled_from([None, 1, 4]), st.booleans())
def test_second_opinion_on_lists(
    document: dict[str, Any],
    accept: list[tuple[str, str]],
    ignore: list[str],
    indent: int | None,
    ascii_only: bool,  # noqa: FBT001 - hypothesis passes it by position
) -> None:
    data = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode()
    result = run_main(data, *options(accept, ignore))
    assert_contract(result)
    assert (result.code, result.lines) == second_opinion.verdict(document, accept, ignore)


nested = st.recursive(
    nodes | strangers,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.builds(
            lambda items, kind: {"items": items} | kind,
            st.lists(inner, max_size=3),
            st.sampled_from([{}, {"kind": "List"}, {"kind": "NodeList"}, {"kind": "PodList"}]),
        ),
    ),
    max_leaves=8,
)


@examples(150)
@given(st.lists(nested, max_size=3), st.sampled_from([8, 100_000]))
def test_second_opinion_on_lists_in_lists(document: list[Any], size: int) -> None:
    for whole in (document, {"items": document}):
        with chunks_of(size):
            result = run_main(json.dumps(whole).encode())
        assert_contract(result)
        assert (result.code, result.lines) == second_opinion.verdict(whole)


@examples(100)
@given(nodes)
def test_second_opinion_on_single_nodes(node: dict[str, Any]) -> None:
    document = node | {"kind": "Node"}
    result = run_main(json.dumps(document).encode())
    assert (result.code, result.lines) == second_opinion.verdict(document)


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    return value


@examples(100)
@given(
    lists,
    st.randoms(use_true_random=False),
    st.integers(4, 90),
    st.sampled_from(["\t", " ", "\r\n"]),
)
def test_key_order_white_space_and_chunks_change_nothing(
    document: dict[str, Any], order: random.Random, size: int, blank: str
) -> None:
    plain = run_main(json.dumps(document, separators=(",", ":")).encode())
    other = json.dumps(shuffled(document, order), indent=blank)
    with chunks_of(size):
        assert run_main(f"{blank}{other}{blank}".encode()) == plain


@examples(100)
@given(nodes, st.lists(nodes | strangers, max_size=4), st.lists(nodes | strangers, max_size=4))
def test_other_items_change_nothing(
    node: dict[str, Any], before: list[dict[str, Any]], behind: list[dict[str, Any]]
) -> None:
    name = "the-one-in-the-middle"
    node["metadata"]["name"] = name
    alone = run_main(json.dumps({"items": [node]}).encode())
    among = run_main(json.dumps({"items": [*before, node, *behind]}).encode())
    mine = [line for line in among.out.splitlines() if line.startswith(f"MISMATCH={name} ")]
    assert mine == (alone.out.splitlines() if alone.code else [])


@examples(300)
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"\xff\xfe{")
@example(b"\0{\0}")
@example(b"\0\0\0{")
@example(b"-")
@example(b'"')
@example(b"\x0b{")
def test_any_bytes(data: bytes) -> None:
    assert_contract(run_main(data))


@examples(200)
@given(values)
def test_any_json(value: Any) -> None:
    for document in (
        value,
        {"items": value},
        {"items": [value]},
        {"kind": "Node", "metadata": value},
    ):
        assert_contract(run_main(json.dumps(document).encode()))


@examples(200)
@given(
    values,
    st.sampled_from(["name", "labels", "label", "status", "allocatable", "quantity", "kind"]),
)
def test_any_value_in_any_field(value: Any, field: str) -> None:
    labels: Any = {second_opinion.KEY: value if field == "label" else "container"}
    quantity = value if field == "quantity" else "1"
    allocatable = value if field == "allocatable" else {"nvidia.com/gpu": quantity}
    item = {
        "kind": value if field == "kind" else "Node",
        "metadata": {
            "name": value if field == "name" else "n",
            "labels": value if field == "labels" else labels,
        },
        "status": value if field == "status" else {"allocatable": allocatable},
    }
    result = run_main(json.dumps({"items": [item]}).encode())
    assert_contract(result)
    assert result.out.count("\n") <= 1


@examples(300)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_one_printable_line_for_any_text(name: str, label: str, resource: str) -> None:
    assume(name)
    item = {
        "metadata": {"name": name, "labels": {second_opinion.KEY: label}},
        "status": {"allocatable": {f"nvidia.com/{resource}": resource + "x", "nvidia.com/y": "1"}},
    }
    result = run_main(json.dumps({"items": [item]}).encode())
    assert (result.code, result.err) == (1, "")
    line = result.out.removesuffix("\n")
    assert all(" " <= character <= "~" for character in line)


SEEDS = [case.read_bytes() for case in CASES]
TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"\\",
    b"null",
    b"-",
    b"1e",
    b"\0",
    b"\xff",
    b"\n",
    b"{}",
]
TOKENS += [
    b"NaN",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b'"kind": "Pod",',
    b'"items": [',
    b"\xe2\x80\xa8",
    b"\x1f\x8b",
]


def mutated(order: random.Random) -> bytes:
    data = bytearray(order.choice(SEEDS))
    for _ in range(order.randint(1, 4)):
        at = order.randint(0, len(data))
        end = min(len(data), at + order.choice([0, 1, 1, 2, 10, 500]))
        match order.randint(0, 5):
            case 0:
                del data[at:]
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end] * 2
            case 3 if data:
                data[at % len(data)] = order.randrange(256)
            case 4:
                data[at:at] = order.choice(SEEDS)[at:end]
            case _:
                data[at:end] = order.choice(TOKENS)
    return bytes(data)


def test_mutated_dumps() -> None:
    """A bounded fuzz run over the dumps from the field, the same one every time."""
    order = random.Random(20_260_801)  # noqa: S311 - a fuzz run, no secret
    codes = []
    for _ in range(6000):
        data = mutated(order)
        with chunks_of(order.choice([64, 1000, 100_000])):
            result = run_main(data)
        assert_contract(result)
        codes.append(result.code)
        assert (result.code == 2) or _is_json(data), data
    assert {codes.count(code) > 50 for code in (0, 1, 2)} == {True}


def _is_json(data: bytes) -> bool:
    """Judged means valid, says the standard library, which is laxer than the checker."""
    try:
        json.loads(data.decode("utf-8-sig"))
    except ValueError:
        return False
    return True


def test_mutated_dumps_through_the_script() -> None:
    order = random.Random(7)  # noqa: S311 - a fuzz run, no secret
    for _ in range(30):
        data = mutated(order)
        by_script = run_script("-", data=data, env=ENVIRONMENT)
        assert by_script == run_main(data)
