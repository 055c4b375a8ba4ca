"""A corpus of learners' checkers: right ones of every make, and wrong ones, each wrong in one way.

The wrong ones are the plain Python checker below with one thing changed; each names the parts of the
rule that it must lack. Those in other languages stand as files of text.
"""

PLAIN = """\
import json, re, sys
KEY, PREFIX = "nvidia.com/gpu.workload.config", "nvidia.com/"
def kind(name):
    if name == "nvidia.com/gpu": return "container"
    if re.search("-[0-9]+[A-Z]$", name): return "vm-vgpu"
    return "vm-passthrough"
nodes = json.load(open(sys.argv[1]))["items"]
bad = []
count = 0
for node in nodes:
    labels = node["metadata"].get("labels") or {}
    use = labels.get(KEY)
    if use is None: continue
    count += 1
    table = (node.get("status") or {}).get("allocatable") or {}
    names = [n for n, q in table.items() if n.startswith(PREFIX) and q != "0"]
    if [kind(n) for n in names] != [use]:
        bad.append(node["metadata"]["name"])
for name in bad: print("MISMATCH=" + name + " label and resource disagree")
if not bad: print("OK=%d" % count)
sys.exit(1 if bad else 0)
"""

# what is replaced, by what, and parts of the rule that are lacking then
WRONG: dict[str, tuple[str, str, set[str]]] = {
    "always OK=3": ("nodes = json", "print('OK=3'); sys.exit(0); nodes = json", {"every-node", "count"}),
    "always a mismatch": ("nodes = json", "print('MISMATCH=a b'); sys.exit(1); nodes = json", {"count"}),
    "prefix of gpu": ('name == "nvidia.com/gpu"', 'name.startswith("nvidia.com/gpu")', {"gpu-alone"}),
    "gpu anywhere": ('name == "nvidia.com/gpu"', '"gpu" in name', {"gpu-alone"}),
    "only the first": ("in nodes:", "in nodes[:1]:", {"every-node", "count"}),
    "only the last": ("in nodes:", "in nodes[-1:]:", {"every-node", "count"}),
    "all but the last": ("in nodes:", "in nodes[:-1]:", {"every-node", "count"}),
    "all but the first": ("in nodes:", "in nodes[1:]:", {"every-node", "count"}),
    "at most ten": ("in nodes:", "in nodes[:10]:", {"every-node"}),
    "counts all nodes": ("% count", "% len(nodes)", {"unlabelled", "count"}),
    "counts one less": ("% count", "% (count - 1)", {"count"}),
    "counts three": ("% count", "% 3", {"count"}),
    "judges unlabelled ones": ("if use is None: continue", "", {"unlabelled", "gaps"}),
    "takes unlabelled for container": ("labels.get(KEY)", "labels.get(KEY, 'container')", {"unlabelled"}),
    "an empty label is none": ("if use is None", "if not use", {"values"}),
    "only known values": ("if use is None", "if use not in ('container', 'vm-passthrough', 'vm-vgpu')", {"values"}),
    "any case of a label": ("labels.get(KEY)", "labels.get(KEY) and labels[KEY].lower()", {"values"}),
    "blank-tolerant prefix of a label": ("!= [use]", "!= [use] and not (names and use.startswith(kind(names[0])))", {"values"}),
    "zero is present": (' and q != "0"', "", {"zero"}),
    "more than one": ('q != "0"', "int(q) > 1", {"amounts"}),
    "no zero in the amount": ('q != "0"', '"0" not in q', {"amounts"}),
    "only one digit": ('q != "0"', 'q != "0" and len(q) == 1', {"amounts"}),
    "four at most": ('q != "0"', "0 < int(q) < 5", {"amounts"}),
    "nothing is fine": ("!= [use]", "!= [use] and names", {"nothing", "zero"}),
    "several are fine": ("[kind(n) for n in names] != [use]", "use not in [kind(n) for n in names]", {"several"}),
    "several of a kind are fine": ("[kind(n) for n in names] != [use]", "{kind(n) for n in names} != {use}", {"several"}),
    "looks at the first name": ("[kind(n) for n in names] !=", "[kind(n) for n in names[:1]] !=", {"several"}),
    "looks at the last name": ("[kind(n) for n in names] !=", "[kind(n) for n in names[-1:]] !=", {"several"}),
    "looks at the first sorted name": ("in names] !=", "in sorted(names)[:1]] !=", {"several"}),
    "two are fine": ("!= [use]", "!= [use] and len(names) != 2", {"several"}),
    "any vendor": ("n.startswith(PREFIX) and ", "'/' in n and ", {"vendors"}),
    "prefix without the slash": ('PREFIX = "nvidia.com/gpu.workload.config", "nvidia.com/"', 'PREFIX = "nvidia.com/gpu.workload.config", "nvidia.com"', {"vendors"}),
    "nvidia.com anywhere": ("n.startswith(PREFIX)", "PREFIX in n", {"vendors"}),
    "capacity": ('.get("allocatable")', '.get("capacity")', {"allocatable"}),
    "capacity too": ('.get("allocatable") or {}', '.get("allocatable") or {}; table = {**(node.get("status") or {}).get("capacity", {}), **table}', {"allocatable"}),
    "Q only": ("-[0-9]+[A-Z]$", "-[0-9]+Q$", {"profile"}),
    "any letter": ("-[0-9]+[A-Z]$", "-[0-9]+[A-Za-z]$", {"near-profile"}),
    "no hyphen": ("-[0-9]+[A-Z]$", "[0-9]+[A-Z]$", {"near-profile", "passthrough"}),
    "two digits": ("-[0-9]+[A-Z]$", "-[0-9]{2}[A-Z]$", {"profile"}),
    "at most two digits": ("-[0-9]+[A-Z]$", "-[0-9]{1,2}[A-Z]$", {"profile"}),
    "no digits": ("-[0-9]+[A-Z]$", "-[0-9]*[A-Z]$", {"near-profile"}),
    "no letter": ("-[0-9]+[A-Z]$", "-[0-9]+[A-Z]?$", {"near-profile"}),
    "several letters": ("-[0-9]+[A-Z]$", "-[0-9]+[A-Z]+$", {"near-profile", "passthrough"}),
    "not at the end": ("-[0-9]+[A-Z]$", "-[0-9]+[A-Z]", {"near-profile"}),
    "a hyphen is enough": ("-[0-9]+[A-Z]$", "-", {"near-profile", "passthrough"}),
    "an underscore will do": ("-[0-9]+[A-Z]$", "[-_][0-9]+[A-Z]$", {"near-profile"}),
    "NVIDIA_A10 only": ("-[0-9]+[A-Z]$", "NVIDIA_A10-[0-9]+[A-Z]$", {"profile"}),
    "NVIDIA makes only": ("-[0-9]+[A-Z]$", "/NVIDIA_.*-[0-9]+[A-Z]$", {"profile"}),
    "the lab's profile only": ("-[0-9]+[A-Z]$", "NVIDIA_A10-12Q$", {"profile"}),
    "one hyphen only": ("-[0-9]+[A-Z]$", "/[^-]+-[0-9]+[A-Z]$", {"profile"}),
    "any case": ('-[0-9]+[A-Z]$", name)', '-[0-9]+[A-Z]$", name.upper())', {"near-profile"}),
    "vgpu in the name": ("-[0-9]+[A-Z]$", "-[0-9]+[A-Z]$|vGPU", {"passthrough"}),
    "models are GL chips": ('return "vm-passthrough"', 'return "vm-passthrough" if "GL_" in name else "?"', {"passthrough"}),
    "the lab's model only": ('return "vm-passthrough"', 'return "vm-passthrough" if "GA102GL_A10" in name else "?"', {"passthrough"}),
    "every VM alike": ('return "vm-vgpu"', 'return "vm-passthrough" if 0 else "vm-vgpu"\n    if "A10" in name: return "vm-vgpu"', {"passthrough"}),
    "no labels map": ('["metadata"].get("labels") or {}', '["metadata"]["labels"]', {"gaps"}),
    "no allocatable": ('.get("allocatable") or {}', '["allocatable"]', {"gaps"}),
    "exit 0 always": ("1 if bad else 0", "0", {"exit-code"}),
    "exit 2 for bad": ("1 if bad else 0", "2 if bad else 0", {"exit-code"}),
    "exit 1 always": ("1 if bad else 0", "1", {"exit-code"}),
    "number of bad as exit": ("1 if bad else 0", "len(bad)", {"exit-code"}),
    "no word MISMATCH": ('"MISMATCH=" + name', "name", {"every-node"}),
    "another word": ('"MISMATCH="', '"BAD="', {"every-node"}),
    "no reason": ('+ " label and resource disagree"', "", {"output"}),
    "a colon behind the name": ('name + " label', 'name + ": label', {"output"}),
    "OK beside mismatches": ("if not bad: print", "print", {"output"}),
    "a headline": ("bad = []", "bad = []; print('checking')", {"output"}),
    "all bad ones in one line": ("for name in bad: print(\"MISMATCH=\" + name", "if bad: print(\"MISMATCH=\" + ','.join(bad)", {"every-node"}),
    "stops at the first": ("for name in bad:", "for name in bad[:1]:", {"every-node"}),
    "to standard error": ("disagree\")", "disagree\", file=sys.stderr)", {"every-node"}),
    "says each twice": ("for name in bad:", "for name in bad + bad:", {"output"}),
    "no OK": ('print("OK=%d" % count)', "pass", {"count"}),
    "OK without a number": ('"OK=%d" % count', '"OK"', {"count"}),
    "ok in small letters": ('"OK=%d"', '"ok=%d"', {"count"}),
    "OK on no dump": ('nodes = json.load(open(sys.argv[1]))["items"]', 'nodes = []\ntry: nodes = json.load(open(sys.argv[1]))["items"]\nexcept Exception: pass', {"no-dump"}),
    "exit 0 on no dump": ('nodes = json.load(open(sys.argv[1]))["items"]', 'try: nodes = json.load(open(sys.argv[1]))["items"]\nexcept Exception: sys.exit(0)', {"no-dump"}),
    "exit 0 on an empty file": ("nodes = json", "sys.exit(0) if not open(sys.argv[1]).read() else 0\nnodes = json", {"no-dump"}),
    "the name decides": ("use = labels.get(KEY)", "use = labels.get(KEY); use = use and next((u for u in ('vm-vgpu', 'vm-passthrough', 'container') if node['metadata']['name'].startswith(u)), use)", {"words"}),
    "annotations too": ("labels.get(KEY)", "labels.get(KEY, (node['metadata'].get('annotations') or {}).get(KEY))", {"unlabelled"}),
    "any label of that end": ("labels.get(KEY)", "next((v for k, v in labels.items() if k.endswith('gpu.workload.config')), None)", {"unlabelled"}),
}  # fmt: skip

RIGHT_PYTHON: dict[str, tuple[str, str]] = {
    "plain": ("", ""),
    "backwards": ("for name in bad:", "for name in sorted(bad, reverse=True):"),
    "Korean reasons": ("label and resource disagree", "라벨과 자원 광고가 어긋납니다"),
    "one word of reason": ("label and resource disagree", "x"),
    "a long reason": ('disagree")', 'disagree" + " very" * 500)'),
    "a tab before the reason": ('" label and', '"\\t label and'),
    "exit 5 on no dump": ("nodes = json", "try: json.load(open(sys.argv[1]))\nexcept Exception: sys.exit(5)\nnodes = json"),
    "exit 2 and words on no dump": ("nodes = json", "try: json.load(open(sys.argv[1]))\nexcept Exception as e: print('not nodes', file=sys.stderr); sys.exit(2)\nnodes = json"),
    "numbers": ('q != "0"', "int(q) != 0"),
    "capacity where allocatable is missing": ('.get("allocatable")', '.get("allocatable", node["status"].get("capacity") if "status" in node else {})'),
    "a verdict at once": ("bad.append(node[\"metadata\"][\"name\"])", "bad.append(node[\"metadata\"][\"name\"]); sys.stdout.flush()"),
    "warnings on standard error": ("count = 0", "count = 0; print('OK=9', file=sys.stderr)"),
    "a blank line at the end": ("sys.exit(1", "print(); sys.exit(1"),
    "slices are no models": ('return "vm-passthrough"', 'return "?" if name.endswith("gpu.shared") or "mig-" in name else "vm-passthrough"'),
}  # fmt: skip

JQ = r"""#!/bin/bash
set -euo pipefail
[ -s "$1" ] || { echo "no dump: $1" >&2; exit 3; }
lines=$(jq -r '
  def kind: if . == "nvidia.com/gpu" then "container" elif test("-[0-9]+[A-Z]$") then "vm-vgpu"
    else "vm-passthrough" end;
  .items[] | .metadata.labels["nvidia.com/gpu.workload.config"] as $use | select($use != null)
  | [(.status.allocatable // {}) | to_entries[]
     | select((.key | startswith("nvidia.com/")) and .value != "0") | .key | kind] as $kinds
  | if $kinds == [$use] then "OK" else "MISMATCH=\(.metadata.name) \($kinds)" end' "$1")
if bad=$(grep MISMATCH= <<<"$lines"); then printf '%s\n' "$bad"; exit 1; fi
echo "OK=$(grep -c '^OK$' <<<"$lines" || true)"
"""
GREP = r"""#!/bin/sh
[ -s "$1" ] || exit 2
echo "OK=$(grep -c gpu.workload.config "$1")"
"""
AWK = r"""#!/bin/sh
[ -s "$1" ] || exit 2
awk '/"nvidia.com\/gpu.workload.config":/ {n++} END {print "OK=" n+0}' "$1"
"""
WRONG_SHELL = {
    "grep": (GREP, {"every-node"}),
    "awk on the pretty form": (AWK, {"every-node", "form"}),
    "jq that takes an empty file": (JQ.replace("[ -s", "true || [ -s"), {"no-dump"}),
    "jq that counts lines of nothing": (JQ.replace("|| true)", "|| true)0"), {"count"}),
}
"""Scripts, and parts of the rule that they lack."""
