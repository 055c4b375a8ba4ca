"""Judge in a dump of Kubernetes nodes whether each GPU label agrees with what its node advertises.

One file, standard library only, Python 3.8 or newer, so that it also runs alone:
`python3 checker.py NODES.json`. It reads one file (or standard input), never a cluster. `HELP`
below describes use, output and exit codes.

The file is read in pieces and one list item is held at a time, so memory does not grow with the
dump; nothing is printed before the last byte was read, so half a file gets no verdict.

Start-up time counts in a script that is compiled at every run: `json`, `re`, `argparse`, `typing`
and their like are imported only where a run needs them, if at all.
"""

from __future__ import annotations

import codecs
import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, NoReturn, Sequence, Tuple

    # Position in a text -> a JSON value and the position behind it.
    Scan = Callable[[str, int], Tuple[object, int]]

PROGRAM = "check-config"

HELP = """\
usage: check-config.sh [options] NODES.json
       kubectl get nodes -o json | check-config.sh [options] -

Judges each node that carries the label nvidia.com/gpu.workload.config: does its value agree with
the nvidia.com/ resource that the node advertises in status.allocatable?

  container       exactly nvidia.com/gpu
  vm-passthrough  one device model, like nvidia.com/GA102GL_A10
  vm-vgpu         one vGPU profile, like nvidia.com/NVIDIA_A10-12Q

The file: what `kubectl get nodes -o json` prints, a NodeList of the raw API, one Node,
{"items": [...]}, or a list of these (`jq -s .`); UTF-8 or UTF-16. A key that occurs twice counts
with its last value. One page of a longer list is not judged.

options:
  --accept VALUE=PATTERN  names that match PATTERN also fit the label VALUE, any number of them:
                          --accept container='nvidia.com/mig-*'; repeatable
  --ignore PATTERN        leave names that match PATTERN out: --ignore nvidia.com/mlnxnics;
                          repeatable. In a PATTERN, which must match the whole name, * ? and
                          [...] mean what they mean to a shell
  --require N             exit 2 where fewer than N labelled nodes were judged
  --output text|json      text (the default) or one JSON document
  -h, --help              this text

text output, on stdout:
  OK=<number of labelled nodes>      all agree
  MISMATCH=<node> <reason>           one line for each node that does not, in the file's order
On stderr: nodes without the label that advertise GPUs, and vm-passthrough nodes that agree only by
a name that is no card's ("unknown name": a NIC, a switch, another vendor's plugin).
What is not printable ASCII in a name is printed as \\x20, \\u2028 and so on, a backslash as \\\\.

JSON output: version (1), verdict ("ok" or "mismatch"), judged and mismatches (numbers of nodes),
nodes: a list in the file's order of
  node, label    strings; a label that is a number in the dump also comes as a string
  source         "allocatable", or "capacity" where the node has no allocatable
  advertised     a list of name, quantity (a string, as in the dump), kind ("container",
                 "container slice", "vGPU profile" or "device model"), known (false for a device
                 model that is no card's name), accepted (true where an --accept let it fit),
                 readable (false where the quantity is none)
  kind           the kind of all advertised names; null where there are none or several kinds
  expected       what the label asks for; null where the operator does not know the value
  verdict        "ok" or "mismatch"
  reason         null, or the text of the MISMATCH line
  warning        null, or why the verdict "ok" may not hold
and unlabelled: a list of the names of nodes without the label that advertise GPUs.

exit code: 0 all agree, 1 at least one mismatch, 2 not judged (nothing on stdout, the cause on
stderr), 130 interrupted.
"""

LABEL_KEY = "nvidia.com/gpu.workload.config"
CONTAINER = "container"
VM_PASSTHROUGH = "vm-passthrough"
VM_VGPU = "vm-vgpu"
LABEL_VALUES = (CONTAINER, VM_PASSTHROUGH, VM_VGPU)

PREFIX = "nvidia.com/"
GPU = "nvidia.com/gpu"

KIND_CONTAINER = "container"
KIND_SLICE = "container slice"
KIND_PROFILE = "vGPU profile"
KIND_MODEL = "device model"
KIND_OF_LABEL = {
    CONTAINER: KIND_CONTAINER,
    VM_PASSTHROUGH: KIND_MODEL,
    VM_VGPU: KIND_PROFILE,
}
EXPECTED = {
    CONTAINER: "nvidia.com/gpu alone",
    VM_PASSTHROUGH: "exactly one device model",
    VM_VGPU: "exactly one vGPU profile",
}
# What NVIDIA publishes behind the letter of a profile: media engine only, none, all, graphics.
PROFILE_ATTRIBUTES = ("", "ME", "NOME", "MEALL", "GFX")

DIGITS = "0123456789"
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BLANKS = " \t\r\n"  # white space between JSON tokens (RFC 8259, section 2)
# https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity
QUANTITY_SUFFIXES = frozenset(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])

CHUNK = 64 * 1024  # bytes: pieces that stay in the cache and below malloc's threshold for mmap
# A JSON token that is not a string and still broken off is shorter: -Infinity, \ud83d\ude00.
LONGEST_TOKEN = 12
LISTED = 12  # names that one reason shows
NAMED = 5  # nodes that a warning names
LONGEST_SHOWN = 1000  # characters; a node's name has at most 253, a resource's 317
MAKE_IT = "make it with: kubectl get nodes -o json > nodes.json"


class NotNodesError(Exception):
    """The input is not a dump of nodes: what was found, and what to do."""

    def __init__(self, what: str, todo: str = MAKE_IT) -> None:
        super().__init__(f"{what}; {todo}")
        self.what = what
        self.todo = todo


class ItemError(ValueError):
    """An item is no node; the text says why."""


class UsageError(Exception):
    """Arguments that make no sense; the text says which."""


class JsonError(ValueError):
    """Text that is not JSON; `msg` and `pos` as in json.JSONDecodeError."""

    def __init__(self, msg: str, pos: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.pos = pos


class Number(str):
    """A JSON number as it was written: no rounding, no overflow, no limit of digits."""

    __slots__ = ()


# --- Names and quantities ---------------------------------------------------------------------


def kind_of(name: str) -> str:
    """Return the kind of a resource: "container", "container slice", "vGPU profile", "device model".

    `name` is the full name, like `nvidia.com/GA102GL_A10`.
    """
    if name == GPU:
        return KIND_CONTAINER
    short = name[len(PREFIX) :] if name.startswith(PREFIX) else name
    if short == "gpu.shared" or short.startswith("mig-"):
        return KIND_SLICE
    return KIND_PROFILE if _is_profile(short) else KIND_MODEL


def is_known(name: str) -> bool:
    """Tell whether a name of the kind "device model" can be a card's; others are known by their kind.

    The device plugins take it from pci.ids (GA102GL_A10), whose names begin with a capital and are
    more than one word; they may have hyphens (sandbox-device-plugin with an empty P_GPU_ALIAS). A
    card that pci.ids lacks is its four hex digits, and `pgpu` stands for all models. NICs (hostdev),
    switches and other vendors' plugins (gpumem, vgpu) write what no card is called.
    """
    if kind_of(name) != KIND_MODEL:
        return True
    short = name[len(PREFIX) :]
    if short == "pgpu" or (len(short) == 4 and not short.lower().strip(DIGITS + "abcdef")):
        return True
    if short[:1] not in CAPITALS or short.startswith(("NVIDIA_", "GRID_")):
        return short.startswith("nForce")
    return any(character in DIGITS + "_" for character in short)


def kind_in_words(name: str) -> str:
    """Return the kind of a resource as people call it: "unknown name" for what is no card's."""
    return kind_of(name) if is_known(name) else "unknown name"


def _is_profile(name: str) -> bool:
    """Hyphen, digits, one capital letter, perhaps one of NVIDIA's attributes; B4 is a series."""
    _, hyphen, tail = name.rpartition("-")
    if not hyphen:
        return False
    if tail.endswith("B4") and _is_number(tail[:-2]):
        return True
    for attribute in PROFILE_ATTRIBUTES:
        size = tail[: len(tail) - len(attribute)]
        if tail.endswith(attribute) and size[-1:] in CAPITALS and _is_number(size[:-1]):
            return True
    return False


def _is_number(text: str) -> bool:
    return text != "" and not text.strip(DIGITS)


def is_present(quantity: object) -> bool | None:
    """Tell whether a Kubernetes quantity is more or less than nothing; None: it cannot be read.

    Strings and numbers are read; null and "" are absent.
    """
    if quantity in (None, "", "0"):
        return False
    text = _quantity_text(quantity)
    if text is None:
        return None
    figures, suffix = parts_of_quantity(text)
    digits = figures[figures[:1] in ("+", "-") :].replace(".", "", 1)
    if not _is_number(digits) or not _is_quantity_suffix(suffix):
        return None
    return digits.strip("0") != ""


def parts_of_quantity(text: str) -> tuple[str, str]:
    """Return the figures, with sign and point, and the suffix that stands behind them."""
    suffix = text.lstrip("+-." + DIGITS)
    return text[: len(text) - len(suffix)], suffix


def _quantity_text(quantity: object) -> str | None:
    if isinstance(quantity, str):
        return quantity
    if isinstance(quantity, (int, float)) and not isinstance(quantity, bool):
        return repr(quantity)
    return None


def _is_quantity_suffix(suffix: str) -> bool:
    if suffix in QUANTITY_SUFFIXES:
        return True
    exponent = suffix[1:]
    if exponent[:1] in ("+", "-"):
        exponent = exponent[1:]
    return suffix[0] in "eE" and _is_number(exponent)


# --- Showing what strangers wrote -------------------------------------------------------------


def shown(text: str) -> str:
    """Return text that can neither end a line nor move a cursor: printable ASCII without blanks."""
    if len(text) > LONGEST_SHOWN:
        return shown(text[:LONGEST_SHOWN]) + "...(cut)"
    if text.isascii() and text.isprintable() and " " not in text and "\\" not in text:
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if "!" <= character <= "~":
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _sentence(text: str) -> str:
    """Return a stranger's sentence on one line: blanks stay, all else as `shown`."""
    blank = str.maketrans(BLANKS, " " * len(BLANKS))
    return " ".join(shown(word) for word in text[:300].translate(blank).split(" ") if word)


def json_type(value: object) -> str:
    """Say what a JSON value is: "a list", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (Number, int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def _plain(value: object) -> str:
    """Return a JSON value that should be a string, as text; lists and objects only as such."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return "[...]" if isinstance(value, list) else "{...}"
    return repr(value)


# --- The judgement ----------------------------------------------------------------------------


class Rules:
    """What --accept and --ignore change; without them, the strict rule.

    `accept` holds pairs of label value and pattern, `ignore` patterns, in the syntax of fnmatch.
    Raises UsageError where one is no pattern.
    """

    def __init__(self, accept: Sequence[tuple[str, str]] = (), ignore: Sequence[str] = ()) -> None:
        self._accept = [(value, _matcher(pattern)) for value, pattern in accept]
        self._ignore = [_matcher(pattern) for pattern in ignore]

    def ignores(self, name: str) -> bool:
        """Tell whether a resource is left out of the judgement."""
        return any(matches(name[:LONGEST_SHOWN]) for matches in self._ignore)

    def accepts(self, label: str, name: str) -> bool:
        """Tell whether a resource was said to fit a label."""
        return any(
            value == label and matches(name[:LONGEST_SHOWN]) for value, matches in self._accept
        )


def _matcher(pattern: str) -> Callable[[str], object]:
    import fnmatch
    import re

    try:
        return re.compile(fnmatch.translate(pattern)).match
    except re.error:  # a range like [z-a]; from Python 3.9 on it matches nothing
        raise UsageError(f"{shown(pattern)} is not a pattern") from None


STRICT = Rules()


class Resource:
    """One advertised nvidia.com/ resource."""

    __slots__ = ("accepted", "kind", "known", "name", "quantity", "readable")

    def __init__(self, name: str, quantity: object, label: str, rules: Rules) -> None:
        self.name = name
        self.quantity = _plain(quantity)
        self.readable = is_present(quantity) is not None
        self.kind = kind_of(name)
        self.known = is_known(name)
        self.accepted = rules.accepts(label, name)

    def describe(self) -> str:
        """Return name, quantity and kind for a reason."""
        note = "" if self.readable else ", a quantity that cannot be read"
        return f"{shown(self.name)}={shown(self.quantity)} ({kind_in_words(self.name)}{note})"


class Verdict:
    """What was found on one labelled node; `reason` is empty where label and resources agree."""

    __slots__ = ("label", "labels", "node", "reason", "resources", "rules", "source", "status")

    def __init__(self, node: dict[str, object], label: str, rules: Rules) -> None:
        metadata = mapping(node, "metadata")
        self.node = name_of(metadata)
        self.labels = mapping(metadata, "labels")
        self.label = label
        self.rules = rules
        self.status = mapping(node, "status")
        self.source = _source_of(self.status)
        amounts = mapping(self.status, self.source)
        names = sorted(name for name in amounts if name.startswith(PREFIX))
        self.resources = [
            Resource(name, amounts[name], label, rules)
            for name in names
            if is_present(amounts[name]) is not False and not rules.ignores(name)
        ]
        self.reason = "" if agree(label, self.resources) else _reason(self)

    @property
    def unknown(self) -> str:
        """The unknown name that alone makes a passthrough node agree, or nothing."""
        if self.reason or self.label != VM_PASSTHROUGH:
            return ""
        return "".join(r.name for r in self.resources if not r.known and not r.accepted)


def agree(label: str, resources: Sequence[Resource]) -> bool:
    """Tell whether one name is of the label's kind; accepted ones stand beside it or instead."""
    plain = [resource for resource in resources if not resource.accepted]
    own = KIND_OF_LABEL.get(label)
    return (
        own is not None
        and bool(resources)
        and len(plain) <= 1
        and all(resource.kind == own for resource in plain)
    )


def judge(node: dict[str, object], rules: Rules = STRICT) -> Verdict | None:
    """Judge one Node as decoded from JSON; None: it does not carry the label.

    Raises ItemError where the object has no name or a field is of the wrong type.
    """
    metadata = mapping(node, "metadata")
    name_of(metadata)
    label = mapping(metadata, "labels").get(LABEL_KEY)
    return None if label is None else Verdict(node, _plain(label), rules)


def _source_of(status: dict[str, object]) -> str:
    return "allocatable" if status.get("allocatable") is not None else "capacity"


def advertises(node: dict[str, object], rules: Rules = STRICT) -> bool:
    """Tell whether a node, labelled or not, advertises an nvidia.com/ name."""
    try:
        status = mapping(node, "status")
        amounts = mapping(status, _source_of(status))
    except ItemError:  # nobody judges an unlabelled node
        return False
    return any(
        name.startswith(PREFIX) and is_present(amounts[name]) and not rules.ignores(name)
        for name in amounts
    )


def name_of(metadata: dict[str, object]) -> str:
    """Return an object's name; raises ItemError where it has none."""
    name = metadata.get("name")
    if not isinstance(name, str) or isinstance(name, Number) or not name:
        raise ItemError("has no metadata.name")
    return name


def mapping(parent: dict[str, object], key: str) -> dict[str, object]:
    """Return a field that holds an object, an empty one where it is null or absent.

    Raises ItemError where it is something else.
    """
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ItemError(f"has a field {key} that is {json_type(value)} and not an object")
    return value


# --- Reasons: what is wrong, the likely cause, what to do ---------------------------------------

DEPLOY = "nvidia.com/gpu.deploy."
# What has to run before a node advertises the resource of its label.
OPERANDS = {
    CONTAINER: ("device-plugin", "driver", "container-toolkit", "operator-validator"),
    VM_PASSTHROUGH: (
        "sandbox-device-plugin",
        "kata-sandbox-device-plugin",
        "vfio-manager",
        "sandbox-validator",
    ),
    VM_VGPU: ("sandbox-device-plugin", "vgpu-manager", "vgpu-device-manager", "sandbox-validator"),
}
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
NODE = "\0"  # stands for the node's name in a command; no text that is shown holds it
SEE_PODS = f"see what runs there: kubectl get pods -A -o wide --field-selector spec.nodeName={NODE}"


def _reason(verdict: Verdict) -> str:
    expected = EXPECTED.get(verdict.label)
    label = shown(verdict.label) or '""'
    if expected is None:
        wrong = f"label {label} is none of {', '.join(LABEL_VALUES)}"
        parts = [wrong, f"advertises {_advertised(verdict)}", *_about_label(verdict.label)]
    else:
        wrong = f"label {label}, but advertises {_advertised(verdict)}"
        parts = [wrong, f"expected {expected}", *_cause(verdict)]
    name = verdict.node if _is_harmless(verdict.node) else ""
    # No command for a node whose name could mean something to a shell.
    shell = [part.replace(NODE, name) for part in parts[2:] if name or NODE not in part]
    return "; ".join([*parts[:2], *shell])


def _about_label(label: str) -> list[str]:
    default = "sandboxWorkloads.defaultWorkload, container unless set"
    text = f"the operator silently falls back to its default ({default})"
    near = _nearest(label)
    return [text, f"did you mean {near}", f"if so: {_relabel(near)}"] if near else [text]


def _relabel(value: str) -> str:
    return f"kubectl label node {NODE} {LABEL_KEY}={value} --overwrite"


def _nearest(label: str) -> str:
    """Return the valid value that a typo stands for, or nothing."""
    plain = label[:64].strip().lower().replace("_", "-")
    if not plain:
        return ""
    for value in LABEL_VALUES:
        if value.replace("vm-", "") in (plain, plain.replace("vm-", "")):
            return value
    from difflib import get_close_matches

    return "".join(get_close_matches(plain, LABEL_VALUES, 1, 0.6))


def _advertised(verdict: Verdict) -> str:
    names = [resource.describe() for resource in verdict.resources[:LISTED]]
    if len(verdict.resources) > LISTED:
        names.append(f"and {len(verdict.resources) - LISTED} more")
    text = ", ".join(names) or "no nvidia.com/ resource"
    where = " (in capacity: the node has no allocatable)" if verdict.source == "capacity" else ""
    return text + where


def _cause(verdict: Verdict) -> list[str]:
    """Return the likely cause, where the dump shows one, and what to do about it."""
    causes = [_slices, _bystanders, _misspelt, _moved, _several]
    if not verdict.resources:
        causes = [_dra, _switched_off, _nothing_left, _no_cards]
    return next((found for cause in causes for found in [cause(verdict)] if found), [])


def _dra(verdict: Verdict) -> list[str]:
    if _plain(verdict.labels.get(DEPLOY + "dra-driver")) != "true":
        return []
    see = f"see: kubectl get resourceslices --field-selector spec.nodeName={NODE}"
    return ["the operator's DRA stack serves this node and does not read the label", see]


def _switched_off(verdict: Verdict) -> list[str]:
    """Find a label that keeps the operator from deploying what would advertise."""
    for operand in ("operands", *OPERANDS[verdict.label]):
        key, value = DEPLOY + operand, _plain(verdict.labels.get(DEPLOY + operand))
        if value == "false":
            return [
                f"{key}=false switches it off",
                f"switch it on: kubectl label node {NODE} {key}-",
            ]
        if value.startswith("paused"):
            see = f"see how far: kubectl get node {NODE} -L nvidia.com/gpu-driver-upgrade-state"
            return [f"{key}={shown(value)}: it comes back after the driver's upgrade", see]
    return []


def _nothing_left(verdict: Verdict) -> list[str]:
    """Tell by the names that are left, with nothing behind them."""
    amounts, capacity = (
        {
            name: quantity
            for name, quantity in mapping(verdict.status, field).items()
            if name.startswith(PREFIX)
        }
        for field in (verdict.source, "capacity")
    )
    left = [
        f"{shown(name)}={shown(_plain(quantity))}"
        for name, quantity in sorted(capacity.items())
        if is_present(quantity) and not verdict.rules.ignores(name)
    ]
    if left and verdict.source == "allocatable":
        has = f"capacity still has {', '.join(left[:LISTED])}"
        return [f"{has}: the device plugin is gone or calls every device unhealthy", SEE_PODS]
    if any(not verdict.rules.ignores(name) for name in amounts):
        return ["the device plugin registered, but with no device", SEE_PODS]
    return ["what it has is left out by --ignore"] if amounts else []


def _no_cards(verdict: Verdict) -> list[str]:
    if any(role in verdict.labels for role in CONTROL_PLANE):
        off = f"take the label off: kubectl label node {NODE} {LABEL_KEY}-"
        return ["a control-plane node without cards", off]
    text = "no device plugin has registered on this node"
    if _plain(verdict.labels.get("nvidia.com/gpu.present")) != "true":
        text += ", nor does the operator see a card there (nvidia.com/gpu.present is not true)"
    return [text, SEE_PODS]


def _slices(verdict: Verdict) -> list[str]:
    others = _unfitting(verdict)
    slices = [resource.name for resource in others if resource.kind == KIND_SLICE]
    if verdict.label != CONTAINER or not slices or len(slices) < len(others):
        return []
    if all(name.startswith("nvidia.com/mig-") for name in slices):
        return ["MIG slices", _again("to let them pass", ["--accept container='nvidia.com/mig-*'"])]
    return ["shared GPUs", *_again_with(slices, "to let them pass", "--accept container=")]


def _bystanders(verdict: Verdict) -> list[str]:
    """Find names without which the node would agree, and that need not be GPUs."""
    others = [r.name for r in verdict.resources if not r.accepted and _is_bystander(r)]
    rest = [r for r in verdict.resources if r.name not in others]
    if not others or not rest or not agree(verdict.label, rest):
        return []
    return _again_with(others, "if those are no GPUs (NICs, switches, sound)", "--ignore ")


def _is_bystander(resource: Resource) -> bool:
    """Tell whether it can be a NIC, a switch or a card's audio function, by its name."""
    name = resource.name.lower()
    return resource.kind == KIND_MODEL and (
        "audio" in name or "nvswitch" in name or not resource.known
    )


def _misspelt(verdict: Verdict) -> list[str]:
    """Find a vGPU profile that was written almost right, which makes it a device model."""
    if verdict.label != VM_VGPU:
        return []
    for name in (r.name for r in _unfitting(verdict) if r.kind == KIND_MODEL):
        what = _misspelling(name)
        if what:
            return [f"{shown(name)} looks like a vGPU profile {what}", SEE_PODS]
    return []


def _misspelling(name: str) -> str:
    if _is_profile(name.upper()):
        return "in the wrong case"
    if not name.startswith(("nvidia.com/NVIDIA_", "nvidia.com/GRID_")):
        return ""
    head, _, tail = name.rpartition("_")
    if _is_profile(f"{head}-{tail}"):
        return "with _ where - belongs"
    return "without its series letter" if _is_profile(f"{name}Q") else ""


def _moved(verdict: Verdict) -> list[str]:
    """Find one other label that everything on the node would fit, or a stranger's plugin."""
    kinds = {resource.kind for resource in verdict.resources}
    strange = [r.name for r in verdict.resources if not r.known]
    mode = VM_PASSTHROUGH if kinds == {KIND_MODEL} else ""
    if kinds <= {KIND_CONTAINER, KIND_SLICE}:
        mode = CONTAINER
    elif kinds == {KIND_PROFILE}:
        mode = VM_VGPU
    elif mode and strange:
        return [f"{shown(strange[0])} is no card's name: another device plugin runs", SEE_PODS]
    if mode in ("", verdict.label):
        return []
    why = f"the label was moved and the device plugin of {mode} remained, or the label is wrong"
    return [why, f"if it is wrong: {_relabel(mode)}"]


def _several(verdict: Verdict) -> list[str]:
    if len(verdict.resources) < 2:
        return []
    return ["one worker node runs one kind of GPU work", SEE_PODS]


def _unfitting(verdict: Verdict) -> list[Resource]:
    own = KIND_OF_LABEL.get(verdict.label)
    return [r for r in verdict.resources if r.kind != own and not r.accepted]


def _again_with(names: list[str], what: str, option: str) -> list[str]:
    """Say how to judge again with an option for each name; nothing where a shell could obey one."""
    if len(names) > 4 or not all(_is_harmless(name) for name in names):
        return []
    return [_again(what, [option + name for name in names])]


def _again(what: str, options: list[str]) -> str:
    return f"{what}: check-config.sh {' '.join(options)} nodes.json"


def _is_harmless(name: str) -> bool:
    """Tell whether a name means nothing to a shell but itself."""
    letters = frozenset(CAPITALS + CAPITALS.lower() + DIGITS + "._/-")
    return letters.issuperset(name) and len(name) <= 253 and not name.startswith("-")


# --- Reading JSON piece by piece --------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"the constant {name} is not JSON", -1)


def _make_scan() -> Scan:
    """Return the standard library's C scanner: one JSON value at a position, and where it ends."""
    try:
        from _json import make_scanner
    except ImportError:  # an interpreter that is not CPython
        from json import JSONDecoder

        return JSONDecoder(
            parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
        ).raw_decode

    class Settings:
        strict = True  # as JSON has it: no bare control characters in strings
        object_hook = None
        object_pairs_hook = None
        parse_int = Number
        parse_float = Number
        parse_constant = staticmethod(_refuse_constant)
        memo: dict[str, str] = {}  # noqa: RUF012 - an attribute that Python 3.8 asks for

    return make_scanner(Settings())  # type: ignore[arg-type]  # the stub wants a JSONDecoder


def _skip_blanks(text: str, pos: int) -> int:
    while True:
        piece = text[pos : pos + 64]
        rest = piece.lstrip(BLANKS)
        pos += len(piece) - len(rest)
        if rest or not piece:
            return pos


class Source:
    """JSON text that is read in pieces: what was used is dropped, what is missing is read.

    `read(size)` returns up to `size` bytes, none at the end, and None where none can be had yet.
    """

    def __init__(self, read: Callable[[int], bytes | None]) -> None:
        self._read_some = read
        self._scan = _make_scan()
        self.head = self._read(CHUNK)
        self.size = len(self.head)
        _refuse_magic(self.head)
        self.encoding, mark = _encoding(self.head)
        self._decoder = codecs.getincrementaldecoder(self.encoding)()
        self._ended = not self.head
        self._dropped_bytes = mark
        self._last_length = 0
        self._pos = 0
        self.text = ""
        self.text = self._decode(self.head[mark:])

    def _read(self, size: int) -> bytes:
        data = self._read_some(size)
        if data is None:  # not the end: whoever opened it has made it non-blocking
            raise NotNodesError("does not wait for its data", "pipe it: cat | check-config.sh -")
        return data

    def _decode(self, data: bytes) -> str:
        try:
            return self._decoder.decode(data, not data)
        except UnicodeDecodeError as error:
            raise self._undecodable(error) from None

    def _undecodable(self, error: UnicodeDecodeError) -> NotNodesError:
        at = self.size - len(error.object) + error.start
        if error.reason in ("unexpected end of data", "truncated data"):
            return self._cut_off()
        if self.encoding == "utf-8" and _is_binary(self.head):
            return NotNodesError("is binary data, not JSON text")
        found = f"byte {at + 1} is 0x{error.object[error.start]:02x}"
        what = f"is not valid {self.encoding.upper()}: {found}"
        return NotNodesError(what, f"save it as UTF-8, or {MAKE_IT}")

    def _cut_off(self) -> NotNodesError:
        return NotNodesError(
            f"is cut off: it ends at byte {self.size} in the middle of the JSON;"
            " half a dump is not judged"
        )

    def _fill(self) -> None:
        """Read on. As much as is waiting, so that trying a large item again and again stays cheap."""
        waiting = len(self.text) - self._pos
        data = self._read(max(CHUNK, waiting))
        self._ended = not data
        self.size += len(data)
        more = self._decode(data)
        if more:
            self._dropped_bytes += self._byte_length(self.text[: self._pos])
            self.text, self._pos = self.text[self._pos :] + more, 0

    def _byte_length(self, text: str) -> int:
        if self.encoding == "utf-8" and text.isascii():
            return len(text)
        return len(text.encode(self.encoding, "surrogatepass"))

    def place(self, pos: int) -> str:
        """Return the byte, counted from one, of a position in `text`; at the beginning the line too.

        Counting lines all the way would take a tenth of the time.
        """
        byte = self._dropped_bytes + self._byte_length(self.text[:pos]) + 1
        if self._dropped_bytes > len(codecs.BOM_UTF32):
            return f"byte {byte}"
        line = self.text.count("\n", 0, pos) + 1
        return f"byte {byte} (line {line})"

    def peek(self) -> str:
        """Return the next character that is not white space; nothing at the end."""
        while True:
            self._pos = _skip_blanks(self.text, self._pos)
            if self._pos < len(self.text):
                return self.text[self._pos]
            if self._ended:
                return ""
            self._fill()

    def ahead(self, length: int) -> str:
        """Return text that comes next, without using it up; less where less was read so far."""
        return self.text[self._pos : self._pos + length]

    def take(self, expected: str) -> str:
        """Step over the next character, one of `expected`."""
        found = self.peek()
        if not found:
            raise self._cut_off()
        if found not in expected:
            wanted = " or ".join(f"'{character}'" for character in expected)
            raise self._malformed(f"Expecting {wanted}", self._pos)
        self._pos += 1
        return found

    def value(self) -> object:
        """Read one JSON value; a number comes as Number.

        Raises NotNodesError where the text is not JSON.
        """
        self.peek()
        # Two values of the last one's size: trying in vain costs more than reading on.
        if len(self.text) - self._pos < 2 * self._last_length and not self._ended:
            self._fill()
        while True:
            found = self._try_value()
            if found is None:
                continue
            value, end = found
            # A number at the very end of what was read may go on.
            if end < len(self.text) or self._ended or not isinstance(value, Number):
                self._last_length = min(end - self._pos, CHUNK // 2)
                self._pos = end
                return value
            self._fill()

    def _try_value(self) -> tuple[object, int] | None:
        """Scan a value; None: more was read, try again."""
        try:
            return self._scan_value()
        except StopIteration as error:
            self._mend("Expecting value", error.value)
        except ValueError as error:
            self._mend(getattr(error, "msg", str(error)), getattr(error, "pos", -1))
        return None

    def _mend(self, problem: str, at: int) -> None:
        """Read on, where that could mend what the scanner met; raises NotNodesError elsewhere."""
        at = self._pos if at < 0 else at
        if not self._may_go_on(problem, at):
            raise self._malformed(problem, at)
        if self._ended:
            raise self._cut_off()
        self._fill()

    def _scan_value(self) -> tuple[object, int]:
        try:
            return self._scan(self.text, self._pos)
        except SystemError:
            # Python 3.10 and 3.11 look for their exception in this module, imported or not.
            import json.decoder  # noqa: F401

            return self._scan(self.text, self._pos)

    def _may_go_on(self, problem: str, at: int) -> bool:
        """Tell whether more text could mend a problem that the scanner met."""
        if problem.startswith("Unterminated string"):
            return True
        rest = self.text[at:].rstrip(BLANKS)
        if not rest:
            return True
        if len(rest) > LONGEST_TOKEN:
            return False
        if problem.startswith("Invalid \\"):
            return '"' not in rest
        return any(token.startswith(rest) for token in ("true", "false", "null", "-")) or (
            rest[0] in ".eE" and not rest[1:].strip("+-")
        )

    def _malformed(self, problem: str, pos: int) -> NotNodesError:
        words = problem[0].lower() + problem[1:].rstrip(": ")
        found = shown(self.text[pos : pos + 20])
        return NotNodesError(f"is not JSON at {self.place(pos)}: {words}, found {found}")

    def finish(self) -> None:
        """Read to the end, where nothing but white space may follow.

        Raises NotNodesError where there is more.
        """
        found = self.peek()
        if not found:
            return
        place = self.place(self._pos)
        if found in "{[":
            raise NotNodesError(
                f"holds several JSON documents, the second at {place}",
                "make one of them: jq -s . FILE > nodes.json",
            )
        rest = _sentence(self.ahead(60))
        raise NotNodesError(f"has text behind the JSON at {place}: {rest}", "remove it")


def _encoding(head: bytes) -> tuple[str, int]:
    """Return a JSON text's encoding and the length of its byte order mark.

    Without a mark the first character is ASCII, so the zero bytes tell (RFC 4627, section 3).
    """
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if head.startswith(mark):
            return name, len(mark)
    zeros = tuple(byte == 0 for byte in head[:4])
    if zeros == (True, True, True, False):
        return "utf-32-be", 0
    if zeros == (False, True, True, True):
        return "utf-32-le", 0
    if zeros[:2] == (True, False):
        return "utf-16-be", 0
    return ("utf-16-le" if zeros[:2] == (False, True) else "utf-8"), 0


# --- From a document to its items -------------------------------------------------------------

LISTS = ("List", "NodeList")
_STREAMED = object()  # stands for `items` that were handed on one by one


class Sink:
    """What takes the items of a document. `place` is like `.items[2]`, empty for all of it."""

    def add(self, item: object, place: str) -> None:
        """Take one item, whatever JSON it is; where its list tells its kind, it has that kind."""
        raise NotImplementedError

    def begin(self) -> None:
        """Begin a list; lists may lie in lists."""
        raise NotImplementedError

    def forget(self) -> None:
        """End the list and forget its items: `items` occurs again, or its object is no list."""
        raise NotImplementedError

    def end(self, kind: str, place: str) -> None:
        """End the list; its kind may be known only now, as kubectl writes it last."""
        raise NotImplementedError

    def finish(self) -> None:
        """Say what is wrong with the whole, by NotNodesError."""
        raise NotImplementedError


def read_document(source: Source, sink: Sink) -> None:
    """Hand on what a document holds: the items of a list or of a list of lists, or one object.

    Raises NotNodesError where it is none of these, or not whole.
    """
    first = source.peek()
    if first == "[" and source.ahead(CHUNK)[1:].lstrip(BLANKS)[:1] not in "{[]":
        _refuse(source, first)
    if first not in ("{", "["):
        _refuse(source, first)
    try:
        _read(source, sink, "")
    except RecursionError:
        raise NotNodesError("is nested deeper than Python reads; no node is that deep") from None
    source.finish()
    sink.finish()


def _read(source: Source, sink: Sink, place: str) -> None:
    """Read what may be a list as large as the file: piece by piece."""
    first = source.peek()
    if first == "[":
        for number in _members(source):
            _read(source, sink, f"{place}[{number}]")
    elif first == "{":
        _read_object(source, sink, place)
    else:
        sink.add(source.value(), place)


def _read_object(source: Source, sink: Sink, place: str) -> None:
    fields: dict[str, object] = {}
    for key in _keys(source):
        if fields.get(key) is _STREAMED:
            sink.forget()
        if key == "items" and source.peek() == "[":
            sink.begin()
            for number in _members(source):
                _hand_on(source.value(), fields, sink, f"{place}.items[{number}]")
            fields[key] = _STREAMED
        else:
            fields[key] = source.value()
    if fields.get("items") is not _STREAMED:
        _hand_on(fields, {}, sink, place)
    elif _is_list(fields):
        _end_list(fields, sink, place)
    else:
        sink.forget()
        sink.add(fields, place)


def _keys(source: Source) -> Iterator[str]:
    """Step from key to key of an object; the caller reads each value."""
    source.take("{")
    if source.peek() == "}":
        source.take("}")
        return
    mark = ","
    while mark == ",":
        if source.peek() != '"':
            source.take('"')
        key = source.value()
        source.take(":")
        yield str(key)
        mark = source.take(",}")


def _members(source: Source) -> Iterator[int]:
    """Step from member to member of a list; the caller reads each."""
    source.take("[")
    if source.peek() == "]":
        source.take("]")
        return
    number, mark = 0, ","
    while mark == ",":
        yield number
        number += 1
        mark = source.take(",]")


def _hand_on(item: object, owner: dict[str, object], sink: Sink, place: str) -> None:
    """Hand on an item of the list `owner`, or what is in it where it is a list itself."""
    if isinstance(item, list):
        for number, one in enumerate(item):
            _hand_on(one, {}, sink, f"{place}[{number}]")
    elif not isinstance(item, dict):
        sink.add(item, place)
    elif _is_list(item):
        sink.begin()
        for number, one in enumerate(_items(item, place)):
            _hand_on(one, item, sink, f"{place}.items[{number}]")
        _end_list(item, sink, place)
    else:
        if not item.get("kind"):
            _inherit(item, owner)
        _refuse_object(item, place)
        sink.add(item, place)


def _inherit(item: dict[str, object], owner: dict[str, object]) -> None:
    """Give an item of the raw API, which has no kind, that of its list: a Pod of a PodList."""
    kind = owner.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and kind != "List":
        item["kind"] = kind[: -len("List")]
        item.setdefault("apiVersion", owner.get("apiVersion"))


def _is_list(fields: dict[str, object]) -> bool:
    """Tell whether an object is a list of others; such a one has no name."""
    kind = fields.get("kind") or ""
    if kind in LISTS:
        return True
    if "items" not in fields or not isinstance(kind, str) or (kind and not kind.endswith("List")):
        return False
    metadata = fields.get("metadata")
    return not (isinstance(metadata, dict) and metadata.get("name"))


def _items(fields: dict[str, object], place: str) -> list[object]:
    items = fields.get("items")
    kind = fields.get("kind")
    if isinstance(items, list):
        return items
    if items is None and "items" in fields and kind:
        return []  # as Go writes a list that was never filled
    if "items" not in fields:
        raise NotNodesError(within(place, f"is a {kind} without items"))
    raise NotNodesError(within(place, f"has items that are {json_type(items)} and not a list"))


def _end_list(fields: dict[str, object], sink: Sink, place: str) -> None:
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        remaining = metadata.get("remainingItemCount")
        if metadata.get("continue") or is_present(remaining) is not False:
            number = shown(_plain(remaining)) if remaining is not None else "an unknown number of"
            text = f"is one page of a longer list: {number} more items are missing"
            raise NotNodesError(within(place, text), MAKE_IT.replace("make it", "get all"))
    sink.end(str(fields.get("kind") or ""), place)


def _refuse_object(item: dict[str, object], place: str) -> None:
    """Refuse what is no item of any list."""
    if item.get("kind") == "Status" and not is_of_a_group(item):
        message = item.get("message")
        words = f": {_sentence(message)}" if isinstance(message, str) and message else ""
        text = f"is a Status object, the API server's answer to a failed request{words}"
        raise NotNodesError(within(place, text))
    if not place and not item.get("kind"):
        raise NotNodesError("is a JSON object without kind and without items, not nodes")


def within(place: str, problem: str) -> str:
    """Return a problem of what stands at a place, as one of the whole."""
    return f"has an item {place} that {problem}" if place else problem


def is_of_a_group(item: dict[str, object]) -> bool:
    """Tell whether it is of a named API group; Kubernetes' Node is of the core group."""
    version = item.get("apiVersion")
    return isinstance(version, str) and "/" in version


# --- From items to verdicts -------------------------------------------------------------------


class Check(Sink):
    """The verdicts on one dump, built up while it is read.

    Of a node that agrees nothing is kept but its number, unless `keep` asks for its record.
    """

    def __init__(self, rules: Rules, keep: Callable[[Verdict], str] | None = None) -> None:
        self._rules = rules
        self._keep = keep
        self.judged = 0
        self.nodes = 0
        self.others = 0
        self.other = ("", "")  # kind and place of the first item that is no node
        self.problem = ""
        self.mismatches: list[str] = []
        self.records: list[str] = []
        self.unlabelled = 0  # nodes that advertise something all the same
        self.unlabelled_names: list[str] = []  # the first; all of them with `keep`
        self.unknown = 0  # nodes that agree by an unknown name alone
        self.unknown_names: list[str] = []  # the first
        self._before: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Note what was found so far: numbers, and how long each list is."""
        now = self.__dict__.items()
        self._before.append({k: len(v) if isinstance(v, list) else v for k, v in now})

    def forget(self) -> None:
        """Go back to what was found when the list began."""
        for key, before in self._before.pop().items():
            now = self.__dict__[key]
            if isinstance(now, list):
                del now[before:]
            else:
                self.__dict__[key] = before

    def add(self, item: object, place: str) -> None:
        """Judge one item; the first that cannot be a node is remembered as the problem."""
        if self.problem:
            return
        try:
            self._judge(item, place)
        except ItemError as error:
            self.problem = within(place, str(error))

    def _judge(self, item: object, place: str) -> None:
        if not isinstance(item, dict):
            raise ItemError(f"is {json_type(item)} and not a node")
        kind = kind_of_object(item)
        if kind not in ("", "Node") or is_of_a_group(item):
            self._pass_over(kind, place)
            return
        self.nodes += 1
        verdict = judge(item, self._rules)
        if verdict:
            self._count(verdict)
        elif advertises(item, self._rules):
            self.unlabelled += 1
            if self._keep or self.unlabelled <= NAMED:
                self.unlabelled_names.append(name_of(mapping(item, "metadata")))

    def _count(self, verdict: Verdict) -> None:
        self.judged += 1
        if verdict.reason:
            self.mismatches.append(f"MISMATCH={shown(verdict.node)} {verdict.reason}\n")
        if self._keep:
            self.records.append(self._keep(verdict))
        if verdict.unknown:
            self.unknown += 1
            if self.unknown <= NAMED:
                self.unknown_names.append(f"{shown(verdict.node)} ({shown(verdict.unknown)})")

    def _pass_over(self, kind: str, place: str) -> None:
        self.other = self.other if self.others else (kind, place)
        self.others += 1

    def end(self, kind: str, place: str) -> None:
        """Forget the items of what was no list of nodes."""
        if kind and kind not in LISTS:
            self.forget()
            self._pass_over(kind, place)
        else:
            self._before.pop()

    def finish(self) -> None:
        """Refuse what holds an item that is no node, or other kinds alone."""
        if self.problem:
            raise NotNodesError(self.problem)
        if self.nodes or not self.others:
            return
        kind, place = self.other
        name = shown(kind) or "Node of another API group"
        if place:
            raise NotNodesError(f"is a list without nodes: {self.others} of kind {name}")
        raise NotNodesError(f"is {'an' if name[0] in 'AEIOU' else 'a'} {name} object, not nodes")


def kind_of_object(item: dict[str, object]) -> str:
    """Return the kind of a Kubernetes object, empty where it has none.

    Raises ItemError where that is no text.
    """
    kind = item.get("kind")
    if kind is None:
        return ""
    if not isinstance(kind, str) or isinstance(kind, Number):
        raise ItemError(f"has a kind that is {json_type(kind)}")
    return kind


# --- What else people hand over ---------------------------------------------------------------

MAGIC = (
    (b"\x1f\x8b", "gzip-compressed", "gunzip -c FILE | check-config.sh -"),
    (b"BZh", "bzip2-compressed", "bunzip2 -c FILE | check-config.sh -"),
    (b"\xfd7zXZ\0", "xz-compressed", "xz -dc FILE | check-config.sh -"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed", "zstd -dc FILE | check-config.sh -"),
    (b"PK\x03\x04", "a zip archive", "unzip -p FILE | check-config.sh -"),
    (b"k8s\0", "Kubernetes protobuf, not JSON", MAKE_IT),
)
BEGINNINGS = (
    (("apiVersion:", "kind:", "items:", "metadata:", "---", "- ", "%YAML"), "is YAML, not JSON"),
    (("Name:",), "is `kubectl describe` text, not JSON"),
    (("NAME ", "NAME\t"), "is the table of `kubectl get nodes`, not JSON"),
    (("<",), "is HTML or XML, not JSON: perhaps a proxy's or a login page"),
    (("No resources found",), "is kubectl's message that it found nothing"),
)
COMPLAINTS = ("error:", "Error", "Unable to connect", "The connection to the server")


def _refuse_magic(head: bytes) -> None:
    for magic, what, todo in MAGIC:
        if head.startswith(magic):
            raise NotNodesError(f"is {what}", todo)


def _refuse(source: Source, first: str) -> NoReturn:
    """Say what a file is that does not begin as a JSON object does."""
    if not first:
        what = "is empty" if source.size == 0 else "holds nothing but white space"
        raise NotNodesError(what)
    text = source.ahead(65536)
    if _is_binary(text[:1024].encode("utf-8", "replace")):
        raise NotNodesError("is binary data, not JSON text")
    if first in '["-tfn' + DIGITS:
        _refuse_json(source, text)
    _refuse_text(text)
    raise NotNodesError(f"is not JSON; it begins with: {_first_line(text)}")


def _refuse_json(source: Source, text: str) -> None:
    """Refuse what is JSON, but no object; return where it turns out to be other text."""
    try:
        value = source.value()
        source.finish()
    except NotNodesError:
        _refuse_text(text)
        if text[0] in '["':
            raise
        return
    raise NotNodesError(f"is JSON, but {json_type(value)} and not nodes")


def _refuse_text(text: str) -> None:
    """Refuse text of a known look."""
    for starts, what in BEGINNINGS:
        if text.startswith(starts):
            raise NotNodesError(what)
    lines = text.split("\n")
    before = next((n for n, line in enumerate(lines) if line.startswith("{")), 0)
    if before:
        lines_before = f"{before} line{'s' if before > 1 else ''} before the JSON"
        raise NotNodesError(
            f"has {lines_before}, the first: {_first_line(text)}",
            "remove what is not JSON, or keep stderr apart:"
            " kubectl get nodes -o json 2>errors.txt >nodes.json",
        )
    if text.startswith(COMPLAINTS):
        raise NotNodesError(f"is an error message, not JSON: {_first_line(text)}")


def _first_line(text: str) -> str:
    return _sentence(text[:200].split("\n", 1)[0])


def _is_binary(data: bytes) -> bool:
    controls = sum(byte < 32 and byte not in b"\t\n\r\x1b\f" for byte in data[:1024])
    return controls * 20 > min(len(data), 1024)


# --- Output -----------------------------------------------------------------------------------


def _record(verdict: Verdict) -> str:
    """Return one node of the JSON output."""
    import json

    kinds = sorted({resource.kind for resource in verdict.resources})
    return json.dumps(
        {
            "node": verdict.node,
            "label": verdict.label,
            "source": verdict.source,
            "advertised": [
                {
                    "name": resource.name,
                    "quantity": resource.quantity,
                    "kind": resource.kind,
                    "known": resource.known,
                    "accepted": resource.accepted,
                    "readable": resource.readable,
                }
                for resource in verdict.resources
            ],
            "kind": kinds[0] if len(kinds) == 1 else None,
            "expected": EXPECTED.get(verdict.label),
            "verdict": "mismatch" if verdict.reason else "ok",
            "reason": verdict.reason or None,
            "warning": f"{shown(verdict.unknown)} is no card's name" if verdict.unknown else None,
        }
    )


def _json_document(check: Check) -> str:
    import json

    verdict = "mismatch" if check.mismatches else "ok"
    nodes = ",\n  ".join(check.records)
    return (
        f'{{"version": 1, "verdict": "{verdict}", "judged": {check.judged},'
        f' "mismatches": {len(check.mismatches)}, "nodes": [\n  {nodes}\n],'
        f' "unlabelled": {json.dumps(check.unlabelled_names)}}}\n'
    )


def _text_document(check: Check) -> str:
    return "".join(check.mismatches) or f"OK={check.judged}\n"


def _warn(check: Check, name: str) -> None:
    """Tell on stderr what the verdict does not say."""
    texts = [] if check.judged else [f"{name} holds no node with the label {LABEL_KEY}"]
    if check.unlabelled:
        first = [shown(node) for node in check.unlabelled_names[:NAMED]]
        what = f"without the label {LABEL_KEY}" if check.judged else "without it"
        texts.append(f"nodes {what} that advertise GPUs: {_counted(check.unlabelled, first)}")
    if texts:
        _say(f"warning: {'; '.join(texts)}")
    if check.unknown:
        _say(
            "warning: vm-passthrough nodes that agree only by an unknown name, which is no card's:"
            f" {_counted(check.unknown, check.unknown_names)}"
        )


def _counted(number: int, first: list[str]) -> str:
    more = ", ..." if number > len(first) else ""
    return f"{number} ({', '.join(first)}{more})"


def _say(text: str) -> None:
    """Write one line to stderr; where there is no stderr, the exit code has to do."""
    try:
        sys.stderr.write(f"{PROGRAM}: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def _deliver(text: str, code: int) -> int:
    """Write the verdict, all ASCII, to stdout. Return `code`, or 2 where it could not be written.

    A reader that closes a pipe early, like `head -1`, has what it wanted.
    """
    if sys.stdout is None:
        _say("stdout is closed: the verdict could not be written")
        return 2
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        return code
    except (OSError, ValueError) as error:
        _say(f"the verdict could not be written: {_cause_of(error)}")
        return 2
    return code


def _cause_of(error: Exception) -> str:
    return _sentence(getattr(error, "strerror", None) or str(error))


# --- Command line -----------------------------------------------------------------------------


class Options:
    """What the command line asks for."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.accept: list[tuple[str, str]] = []
        self.ignore: list[str] = []
        self.output = "text"
        self.require = 0
        self.help = False

    def set(self, option: str, value: str) -> None:
        """Take one option that has a value; raises UsageError where the value is none of its own."""
        if option == "--ignore":
            self.ignore.append(value)
        elif option == "--output":
            if value not in ("text", "json"):
                raise UsageError(f"--output is text or json, not {shown(value)}")
            self.output = value
        elif option == "--require":
            if not _is_number(value) or len(value) > 9:
                raise UsageError(f"--require is a number of nodes, not {shown(value)}")
            self.require = int(value)
        else:
            label, equals, pattern = value.partition("=")
            if label not in LABEL_VALUES or not equals or not pattern:
                raise UsageError(
                    f"--accept is VALUE=PATTERN with VALUE one of {', '.join(LABEL_VALUES)},"
                    f" not {shown(value)}"
                )
            self.accept.append((label, pattern))


def _parse(arguments: Sequence[str]) -> Options:
    options = Options()
    waiting = list(reversed(arguments))
    while waiting:
        argument = waiting.pop()
        name, equals, value = argument.partition("=")
        if argument == "--":
            options.files += reversed(waiting)
            break
        if argument in ("-h", "--help"):
            options.help = True
        elif name in ("--accept", "--ignore", "--output", "--require"):
            if not equals and not waiting:
                raise UsageError(f"{name} needs a value")
            options.set(name, value if equals else waiting.pop())
        elif argument.startswith("-") and argument != "-":
            raise UsageError(f"there is no option {shown(argument)}")
        else:
            options.files.append(argument)
    if len(options.files) != 1 and not options.help:
        raise UsageError(f"one file is judged at a time, {len(options.files)} were given")
    return options


def _check(options: Options) -> int:
    as_json = options.output == "json"
    check = Check(Rules(options.accept, options.ignore), _record if as_json else None)
    path = options.files[0]
    name = "standard input" if path == "-" else shown(path) or '""'
    try:
        _read_path(path, check)
    except NotNodesError as error:
        _say(f"{name} {error}")
        return 2
    except (OSError, ValueError) as error:
        todo = f"; {MAKE_IT}" if isinstance(error, (FileNotFoundError, IsADirectoryError)) else ""
        _say(f"{name} cannot be read: {_cause_of(error)}{todo}")
        return 2
    except MemoryError:
        _say(f"{name} holds a single value that does not fit into memory")
        return 2
    if check.judged < options.require:
        _say(
            f"not judged: {name} holds {check.judged} nodes with the label {LABEL_KEY},"
            f" --require asks for {options.require}"
        )
        return 2
    _warn(check, name)
    document = _json_document(check) if as_json else _text_document(check)
    return _deliver(document, 1 if check.mismatches else 0)


def _read_path(path: str, check: Check) -> None:
    if path != "-":
        with open(path, "rb") as file:
            read_document(Source(file.read), check)
    elif sys.stdin is None:
        raise NotNodesError("is closed")
    else:
        read_document(Source(sys.stdin.buffer.read), check)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checker with command line arguments; return the exit code, as `HELP` lists them."""
    collecting = gc.isenabled()
    gc.disable()  # what JSON decodes to has no cycles, and looking for some takes a third of the time
    try:
        options = _parse(sys.argv[1:] if argv is None else argv)
        if options.help:
            return _deliver(HELP, 0)
        return _check(options)
    except UsageError as error:
        _say(f"{error}; see {PROGRAM}.sh --help")
        return 2
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    finally:
        if collecting:
            gc.enable()


def run_script(codes: Sequence[int] = (0, 1, 2)) -> NoReturn:
    """Run as a program of its own, and leave without a traceback whatever happens.

    `codes` are the exit codes for agreement, mismatch and not judged. The shell wrapper asks for
    others than the usual ones, because an interpreter that cannot even start also exits with 1.
    """
    from os import _exit

    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
    except BaseException as error:  # noqa: BLE001 - whatever it is, the exit code must not be 1
        _say(f"failed, which is a bug: {type(error).__name__}: {_sentence(str(error))}")
        code = 2
    # Not sys.exit: with a full disk or a closed pipe the interpreter would complain once more.
    _exit(codes[code] if code < len(codes) else code)


if __name__ == "__main__":
    run_script()
