"""The manifests of an attempt (steps 4 to 7), compared by meaning: any YAML style will do."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import yaml

from gpuwl.findings import Finding, Severity, shown
from gpuwl.k8s.objects import Object
from gpuwl.lab.names import LabPod
from gpuwl.texts import text
from gpuwl.verification import asking, files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Findings, first_few


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping, as YAML asks and PyYAML does not."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - PyYAML's signature
    ) -> dict[Hashable, Any]:
        keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((value for (tag, value) in keys if keys.count((tag, value)) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, text("verify.key_twice", key=twice), node.start_mark
            )
        return super().construct_mapping(node, deep)


def matches(attempt: Attempt, requirement: str, lab_pod: LabPod) -> Findings:
    """Check that a manifest's file says what the lab's Pod is."""
    data = files.read(attempt.artifacts, lab_pod.manifest)
    if data is None:
        yield files.missing(requirement, lab_pod.manifest)
    else:
        yield from first_few(compare(data, requirement, lab_pod, attempt.taints))


def compare(
    data: bytes, requirement: str, lab_pod: LabPod, taints: Sequence[Object] = ()
) -> Iterator[Finding]:
    """Yield what differs between a manifest in YAML and the lab's Pod."""
    file = lab_pod.manifest
    try:
        documents = [one for one in yaml.load_all(data, _Loader) if one is not None]
        only = documents[0] if len(documents) == 1 and isinstance(documents[0], dict) else None
        found = list(asking.deviations(only, lab_pod, taints)) if only is not None else []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split()) or text("verify.too_deep")
        what = text("verify.no_yaml")
        yield Finding(requirement, file, what, file=file, found=shown(words))
        return
    if only is None:
        what, words = text("verify.no_single_pod"), text("verify.documents", count=len(documents))
        yield Finding(requirement, file, what, file=file, found=words)
        return
    for one in found:
        what = text("verify.field_differs", field=shown(one.path))
        expected, found_there = asking.sides(one)
        yield Finding(requirement, file, what, file=file, expected=expected, found=found_there)
    if not found and asking.asks_twice(only, lab_pod):
        what = text("verify.requests_too", name=lab_pod.resource)
        yield Finding(requirement, file, what, Severity.NOTE, file=file)
