"""Manifests are found, read as Kubernetes reads them, and refused where they could do harm."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuwl.errors import InputError
from gpuwl.k8s import sources, yamltext
from gpuwl.k8s.documents import Document, Unrendered, read

STREAM = """\
# first
---
# second
apiVersion: v1
kind: Pod
metadata: {name: a}
---
--- # an empty one, then a List
apiVersion: v1
kind: List
items:
- kind: Pod
  metadata:
    name: b
- kind: List
  items:
  - kind: Pod
    metadata:
      name: c
...
kind: Pod
metadata:
  name: d
  labels: &labels
    app: d
spec:
  labels:
    <<: *labels
    more: yes
"""


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def objects(*paths: Path | str) -> list[Document]:
    return [found for found in read(paths) if isinstance(found, Document)]


def places(documents: list[Document]) -> list[tuple[str, int, int]]:
    """Return name, first line and the line of the name of each object."""
    return [
        (found.object["metadata"]["name"], found.line, found.line_of(("metadata", "name")))
        for found in documents
    ]


def test_many_documents_and_lists_in_lists_give_each_object_with_its_lines(tmp_path: Path) -> None:
    found = objects(write(tmp_path / "a.yaml", STREAM))
    assert places(found) == [("a", 4, 6), ("b", 12, 14), ("c", 17, 19), ("d", 21, 23)]
    assert found[1].text_of(14) == "    name: b"
    assert found[3].object["spec"]["labels"] == {"app": "d", "more": True}
    assert found[3].line_of(("spec", "labels", "nothing")) == 27


def test_json_gives_the_same_and_bare_items_of_the_raw_api_get_their_kind(tmp_path: Path) -> None:
    text = '{"kind":"PodList",\n"apiVersion":"v1",\n"items":[{"metadata":{"name":"x"}},\n {"metadata":\n'
    text += '{"a":[1,{}],"name":"y"}}]}\n{"kind":"Pod",\n"metadata":{"name":"z"}}\n'
    found = objects(write(tmp_path / "a.json", text))
    assert places(found) == [("x", 3, 3), ("y", 4, 5), ("z", 6, 7)]
    assert {each.object["kind"] for each in found} == {"Pod"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_line_ends_of_other_systems(
    tmp_path: Path, encoding: str, newline: str
) -> None:
    content = STREAM.replace("\n", newline).encode(encoding)
    assert places(objects(write(tmp_path / "a.yaml", content)))[3] == ("d", 21, 23)


SCALARS = ["yes", "NO", "on", "~", "null", "0x1F", "010", "0b11", "1_000", "1e3", ".5", "-7", "+7"]
SCALARS += [
    "2026-12-03",
    "10:30",
    "0.5",
    "1.",
    "12e",
    ".",
    "1Gi",
    "'010'",
    '"yes"',
    "0o17",
    "y",
]


def test_scalars_mean_what_kubectl_makes_of_them(tmp_path: Path, kubectl: Any) -> None:
    lines = "".join(f"  k{index}: {text}\n" for index, text in enumerate(SCALARS))
    manifest = f"apiVersion: gpuwl.dev/v1\nkind: Scalars\nmetadata: {{name: a}}\nspec:\n{lines}"
    path = write(tmp_path / "a.yaml", manifest)
    done = kubectl("annotate", "--local", "--overwrite", "a=b", "-o", "json", "-f", str(path))
    assert done.returncode == 0, done.stderr
    assert objects(path)[0].object["spec"] == json.loads(done.stdout)["spec"]


def test_what_pyyaml_makes_of_our_own_manifests_is_the_same(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/clusterrole.yaml").read_text()
    expected = [each for each in yaml.safe_load_all(text) if each]
    assert [each.object for each in objects(write(tmp_path / "a.yaml", text))] == expected


def test_folders_are_read_in_order_and_only_objects_count(tmp_path: Path) -> None:
    write(tmp_path / "b/two.yml", "kind: Pod\nmetadata: {name: two}")
    write(tmp_path / "a/one.json", '{"kind": "Pod", "metadata": {"name": "one"}}')
    write(tmp_path / "values.yaml", "image: {tag: 1}")
    write(tmp_path / "notes.txt", "kind: Pod")
    write(tmp_path / ".git/x.yaml", "a: [")
    (tmp_path / "b/loop").symlink_to(tmp_path)
    (tmp_path / "b/again.yaml").symlink_to(tmp_path / "b/two.yml")
    (tmp_path / "b/nowhere.yaml").symlink_to(tmp_path / "missing")
    assert [each[0] for each in places(objects(tmp_path, tmp_path / "b"))] == ["one", "two"]


def test_what_must_be_rendered_is_named_with_its_command(tmp_path: Path) -> None:
    write(tmp_path / "base/kustomization.yaml", "resources: [pod.yaml]")
    pod = write(tmp_path / "base/pod.yaml", "kind: Pod\nmetadata: {name: a}")
    write(tmp_path / "chart/Chart.yaml", "name: c")
    template = write(
        tmp_path / "chart/templates/x.yaml", "{{- if .Values.on }}\nkind: Pod\n{{- end }}"
    )
    loose = write(tmp_path / "loose.yaml", "kind: Pod\nmetadata: {name: {{ name }}}")
    found = list(read([tmp_path]))
    assert [each.file for each in found] == [
        str(tmp_path / "base/kustomization.yaml"),
        str(pod),
        str(tmp_path / "chart"),
        str(loose),
    ]
    commands = [each.command for each in found if isinstance(each, Unrendered)]
    assert commands[:2] == [f"kubectl kustomize {tmp_path}/base", f"helm template {tmp_path}/chart"]
    assert list(read([template])) == [Unrendered(str(template), f"helm template {tmp_path}/chart")]


def test_braces_of_others_in_plain_yaml_are_read(tmp_path: Path) -> None:
    text = "kind: Workflow\nmetadata: {name: a}\nspec: {image: '{{inputs.parameters.image}}'}"
    assert len(objects(write(tmp_path / "a.yaml", text))) == 1


def bomb() -> str:
    text = "kind: Pod\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    for level in range(1, 12):
        text += f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]\n"
    return text


HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "bomb": (bomb(), "aliases repeat"),
    "merge bomb": ("kind: Pod\na: &a {b: &b {<<: [*b]}}", "contains itself"),
    "recursion": ("kind: Pod\na: &a [*a]", "contains itself"),
    "unknown anchor": ("kind: Pod\na: *b", "undefined|not defined"),
    "python": ("kind: Pod\na: !!python/object/apply:os.system ['touch pwned']", "python"),
    "own tag": ("kind: Pod\na: !Ref b", "!Ref"),
    "deep lists": ("kind: Pod\na: " + "[" * 100_000, "deep|nest"),
    "deep mappings": ("kind: Pod\na: " + "{a: " * 100_000, "deep|nest"),
    "deep blocks": ("- " * 100_000, "deep|nest"),
    "deep json": ('{"kind":' + '[{"a":' * 50_000, "deep|nest"),
    "deep within libyaml": ("kind: Pod\na: " + "[" * 800 + "]" * 800, "nested deeper"),
    "not text": (b"kind: Pod\nname: \xff\xfe\xfd", "neither UTF-8"),
    "binary": (b"\x7fELF\x02\x01\x01" + bytes(100), "control|special|neither"),
    "cut off": ("kind: Pod\nmetadata: {name: ", "a.yaml:"),
    "a key that is a list": ("kind: Pod\n? [a]\n: b", "key"),
    "many digits": ('{"kind": "Pod", "a": ' + "1" * 10_000 + "}", ""),
    "empty": ("", "holds no Kubernetes object"),
    "prose": ("Name: a\nLabels: b", "holds no Kubernetes object"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_refused_soon_with_file_and_line(tmp_path: Path, name: str) -> None:
    content, said = HOSTILE[name]
    path = write(tmp_path / "a.yaml", content)
    start = time.monotonic()
    if not said:
        assert objects(path)
        return
    with pytest.raises(InputError, match=said):
        objects(path)
    assert time.monotonic() - start < 5
    assert not (tmp_path / "pwned").exists()


def test_the_parser_without_libyaml_refuses_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwl.k8s.yamlevents._LOADER", yaml.SafeLoader)
    for name in ("bomb", "recursion", "python", "deep within libyaml", "cut off"):
        content, said = HOSTILE[name]
        with pytest.raises(InputError, match=f"{said}|Recursion"):
            objects(write(tmp_path / "a.yaml", content))


def test_a_document_of_100_mb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("w") as stream:
        stream.write("kind: Pod\na: ")
        for _ in range(100):
            stream.write("x" * (1 << 20))
    program = (
        "import sys\nfrom gpuwl.k8s.documents import read\nfrom gpuwl.errors import InputError\n"
        "try: list(read([sys.argv[1]]))\nexcept InputError as error: print(error.message)\n"
        "peak = [line for line in open('/proc/self/status') if line.startswith('VmHWM')][0]\n"
        "print(int(peak.split()[1]) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    said, memory = done.stdout.splitlines()
    assert "more than 32 MiB" in said
    assert int(memory) < 200


@pytest.mark.timeout(20)
def test_pipes_devices_and_what_cannot_be_opened_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="pipe or a device"):
            objects(path)
    with pytest.raises(InputError, match="cannot read"):
        objects(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="cannot read"):
        objects("a\0b")


def test_a_shell_s_substitution_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"kind: Pod\nmetadata: {name: a}")
    os.close(writer)
    assert len(objects(f"/dev/fd/{reader}")) == 1
    os.close(reader)


def test_bounds_are_those_that_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depth = yamltext.DEEPEST - 1  # and the mapping around
    text = "kind: Pod\na: " + "[" * depth + "]" * depth
    assert len(objects(write(tmp_path / "a.yaml", text))) == 1
    monkeypatch.setattr(sources, "LARGEST", 40)
    assert len(objects(write(tmp_path / "b.yaml", "kind: Pod\n---\n" * 10))) == 10
    with pytest.raises(InputError, match=r"b.yaml:2: a document of more"):
        objects(write(tmp_path / "b.yaml", "kind: Pod\n---\n" + "a: 1\n" * 10))
