"""Kinds of names and quantities: the tables of the specification."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwl.checker import (
    KIND_CONTAINER,
    KIND_MODEL,
    KIND_PROFILE,
    KIND_SLICE,
    is_known,
    is_present,
    kind_of,
)

TYPES = (Path(__file__).parent / "data" / "vgpu-types.txt").read_text().split()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gpu", KIND_CONTAINER),
        ("gpu.shared", KIND_SLICE),
        ("mig-1g.10gb", KIND_SLICE),
        ("mig-1g.10gb.shared", KIND_SLICE),
        ("mig-1g.5gb.me", KIND_SLICE),
        ("NVIDIA_A10-12Q", KIND_PROFILE),
        ("GRID_P40-1Q", KIND_PROFILE),
        ("A100-1-5CME", KIND_PROFILE),
        ("RTX_Pro_6000_Blackwell_DC-1-24QGFX", KIND_PROFILE),
        ("GRID_T4-2B4", KIND_PROFILE),
        ("H100-1-12CNOME", KIND_PROFILE),
        ("H100-1-12CMEALL", KIND_PROFILE),
        ("GA102GL_A10", KIND_MODEL),
        ("GM107M_GeForce_GTX_860M", KIND_MODEL),
        ("AD102GL_L40S", KIND_MODEL),
        ("26b5", KIND_MODEL),
        ("pgpu", KIND_MODEL),
        ("GRID_T4_2Q", KIND_MODEL),
        ("NVIDIA_A10-12q", KIND_MODEL),
        ("NVIDIA_A10-12", KIND_MODEL),
        ("NVIDIA_A10-12QQ", KIND_MODEL),
        ("NVIDIA_A10-Q", KIND_MODEL),
        ("NVIDIA_A10-12Q ", KIND_MODEL),
        ("NVIDIA_A10-12Q\n", KIND_MODEL),
        ("NVIDIA_A10-12QME4", KIND_MODEL),
        ("NVIDIA_A10-2Q4", KIND_MODEL),
        ("NVIDIA_A10-2B5", KIND_MODEL),
        ("NVIDIA_A10-B4", KIND_MODEL),
        ("NVIDIA_A10-\u0661\u0662Q", KIND_MODEL),
        ("NVIDIA_A10-12\u00c4", KIND_MODEL),
        ("NVIDIA_A10-12GFX", KIND_MODEL),
        ("vgpu-cores", KIND_MODEL),
        ("GPU", KIND_MODEL),
        ("gpu.Shared", KIND_MODEL),
        ("gpu2", KIND_MODEL),
        ("", KIND_MODEL),
    ],
)
def test_kind_of(name: str, kind: str) -> None:
    assert kind_of(f"nvidia.com/{name}") == kind


def test_every_published_type_is_a_profile() -> None:
    assert len(TYPES) == 710
    names = [f"nvidia.com/{vendor}_{name}" for vendor in ("NVIDIA", "GRID") for name in TYPES]
    assert {kind_of(name) for name in names} == {KIND_PROFILE}


def test_underscored_types_are_models() -> None:
    """What the device plugin makes of a device name holds no hyphen, so it is never a profile."""
    names = {f"nvidia.com/{name.replace('-', '_')}" for name in TYPES}
    assert {kind_of(name) for name in names} == {KIND_MODEL}


UNKNOWN = (
    "hostdev mlnxnics rdma nvswitch gpumem gpumem-percentage gpucores sharedgpu vgpu vgpu-cores"
    " vgpu-memory vgpu-number imex-channel GPU gpu2 cpu gpu.Shared NVIDIA_A10-12q GRID_T4_2Q"
    " \u0410D102GL_L40S A"
)
KNOWN = (
    "GA102GL_A10 GA100_A100-SXM-64GB GH100_H200_SXM_141GB GM107M_GeForce_GTX_860M NV1 MCP61"
    " High_Definition_Audio_Controller nForce2_AGP GT200b_Quadro 26b5 2236 pgpu"
    " gpu gpu.shared mig-1g.10gb NVIDIA_A10-12Q GRID_T4-2B4"
)


@pytest.mark.parametrize("name", [*UNKNOWN.split(), ""])
def test_what_is_no_cards_name_is_unknown(name: str) -> None:
    assert kind_of(f"nvidia.com/{name}") == KIND_MODEL
    assert not is_known(f"nvidia.com/{name}")


@pytest.mark.parametrize("name", KNOWN.split())
def test_cards_and_the_other_kinds_are_known(name: str) -> None:
    assert is_known(f"nvidia.com/{name}")


ABSENT: list[object] = [
    "0",
    0,
    0.0,
    "0k",
    "0.0",
    "",
    None,
    "-0",
    "+0",
    "00",
    ".0",
    "0.",
    "0Ki",
    "0e5",
    "0E",
]
ABSENT += ["0E-12", "0.000n", "-0.0e+3"]
PRESENT: list[object] = [
    "16384",
    "1k",
    4,
    "1",
    "-1",
    "+2",
    "0.5",
    ".5",
    "5.",
    "100m",
    "1n",
    "3u",
    "2E",
    "2e3",
]
PRESENT += ["1E+2", "1e-9", "4Ki", "4Mi", "4Gi", "4Ti", "4Pi", "4Ei", "1M", "1G", "1T", "1P", 1.5]
PRESENT += ["0.0000000001", "1" * 10_000]
UNREADABLE: list[object] = [
    "abc",
    " 4",
    "4 ",
    "k",
    ".",
    "+",
    "-",
    "1K",
    "1ki",
    "0x10",
    "1e",
    "1e+",
    "1e1.5",
    "e5",
]
UNREADABLE += [
    "1.2.3",
    "--1",
    "1,5",
    "\u0664",
    "NaN",
    "Infinity",
    True,
    False,
    [],
    {},
    ["1"],
    "0\n",
]
UNREADABLE += ["0 ", "0e", "0kk", "0Kii", "\x00", float("inf"), float("nan"), "1e5k"]


@pytest.mark.parametrize("quantity", ABSENT, ids=repr)
def test_absent(quantity: object) -> None:
    assert is_present(quantity) is False


@pytest.mark.parametrize("quantity", PRESENT, ids=lambda quantity: repr(quantity)[:20])
def test_present(quantity: object) -> None:
    assert is_present(quantity) is True


@pytest.mark.parametrize("quantity", UNREADABLE, ids=repr)
def test_unreadable(quantity: object) -> None:
    assert is_present(quantity) is None


SUFFIXES = ["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3", "e+0"]


@given(
    st.sampled_from(["", "+", "-"]),
    st.decimals(min_value=0, max_value=10**6, places=4),
    st.sampled_from(SUFFIXES),
)
def test_presence_is_what_the_number_says(sign: str, amount: Decimal, suffix: str) -> None:
    assert is_present(f"{sign}{amount:f}{suffix}") is (amount != 0)
