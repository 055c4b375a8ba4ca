"""A workload under review: an object, the Pods and VMs that it makes, and what they ask for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuwl.checker import shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import pods
from gpuwl.k8s.documents import Document
from gpuwl.k8s.names import is_extended
from gpuwl.k8s.objects import Object
from gpuwl.k8s.pods import Amounts, Path, Template, mapping, text

LAUNCHER_NAMES = ("virt-launcher-", "vmi-")
"""How Pods are called that hold a VM, KubeVirt's and the lab's stand-ins."""
_PLACEHOLDERS = ("{{", "${", "$(", "<")
_RESOURCES = ("resources", "resourcesPerNode")
CLUSTER_KINDS = ("Node", "ClusterPolicy", "GPUCluster")
"""Kinds under review that have no namespace."""


@dataclass(frozen=True)
class Ask:
    """One amount that a manifest asks for: the name, what is written, and where."""

    name: str
    value: object
    path: Path


@dataclass(frozen=True)
class Unit:
    """One Pod template or VM of a workload, with what it asks of a node.

    `asked` are the extended resources with an amount above zero; `paths` lead to where each stands
    first.
    """

    template: Template
    asked: Amounts
    paths: dict[str, Path]
    is_vm: bool = False

    @property
    def spec(self) -> Object:
        """The spec of the Pod or of the VM instance."""
        return self.template.spec

    @property
    def holds_vm(self) -> bool:
        """Tell whether it is a VM, or a Pod that holds one: by runtime class, label or name."""
        labels = mapping(self.template.metadata.get("labels"))
        return (
            self.is_vm
            or bool(self.spec.get("runtimeClassName"))
            or "kubevirt.io" in labels
            or self.template.name.startswith(LAUNCHER_NAMES)
        )


@dataclass(frozen=True)
class Workload:
    """An object that makes Pods or VMs, or asks for GPUs on its own (`loose`)."""

    document: Document
    units: tuple[Unit, ...]
    loose: tuple[Ask, ...] = ()

    @property
    def namespace(self) -> str:
        """The namespace, `default` where none is written."""
        return text(mapping(self.document.object.get("metadata")).get("namespace")) or "default"

    @property
    def where(self) -> str:
        """Kind, namespace and name, safe to print: `Pod/default/job`."""
        return where(self.document.object)

    @property
    def asks(self) -> bool:
        """Tell whether anything about it can be a finding."""
        return bool(self.loose) or any(_is_of_interest(unit) for unit in self.units)

    def finding(  # noqa: PLR0913 - one keyword per fact of a finding
        self,
        name: str,
        path: Path,
        what: str,
        *,
        severity: Severity = Severity.ERROR,
        expected: str | None = None,
        found: str | None = None,
        fix: str | None = None,
    ) -> Finding:
        """Return a finding about the field at a path of the object."""
        return finding(
            self.document, name, path, what, severity=severity, expected=expected, found=found, fix=fix
        )  # fmt: skip


def where(item: Object) -> str:
    """Return `<kind>/<namespace>/<name>` of an object, escaped; `Node//a` for one without namespace."""
    metadata = mapping(item.get("metadata"))
    kind = text(item.get("kind"))
    namespace = "" if kind in CLUSTER_KINDS else text(metadata.get("namespace")) or "default"
    generated = text(metadata.get("generateName"))
    name = text(metadata.get("name")) or (f"{generated}*" if generated else "?")
    return "/".join(shown(word) for word in (kind, namespace, name))


def finding(  # noqa: PLR0913
    document: Document,
    name: str,
    path: Path,
    what: str,
    *,
    severity: Severity = Severity.ERROR,
    expected: str | None = None,
    found: str | None = None,
    fix: str | None = None,
) -> Finding:
    """Return a finding about the field at a path of a document's object."""
    return Finding(
        name,
        where(document.object),
        what,
        severity,
        document.file,
        document.line_of(path),
        expected,
        found,
        fix,
    )


def of(document: Document) -> Workload | None:
    """Return the workload that an object is, None for one that makes no Pods and asks for no GPU."""
    item = document.object
    units = [_pod_unit(each) for each in pods.templates(item)]
    units += [_vm_unit(each) for each in pods.vm_templates(item)]
    loose = () if units else tuple(_loose(item))
    return Workload(document, tuple(units), loose) if units or loose else None


def _pod_unit(template: Template) -> Unit:
    asked = {
        name: amount
        for name, amount in pods.requests(template.spec).items()
        if is_extended(name) and amount > 0
    }
    paths: dict[str, Path] = {}
    for ask in pod_asks(template):
        paths.setdefault(ask.name, ask.path)
    return Unit(template, asked, paths)


def _vm_unit(template: Template) -> Unit:
    asked: Amounts = {}
    paths: dict[str, Path] = {}
    for device in pods.vm_devices(template.spec):
        if device.name and not is_placeholder(device.name):
            asked[device.name] = asked.get(device.name, 0) + 1
            paths.setdefault(device.name, (*template.path, *device.path, "deviceName"))
    return Unit(template, asked, paths, is_vm=True)


def pod_asks(template: Template) -> Iterator[Ask]:
    """Return what the containers of a Pod ask for, limits before requests."""
    for field in ("containers", "initContainers"):
        found = template.spec.get(field)
        for index, container in enumerate(found if isinstance(found, list) else ()):
            resources = mapping(mapping(container).get("resources"))
            yield from amounts_of(resources, (*template.path, field, index, "resources"))


def amounts_of(resources: Object, path: Path) -> Iterator[Ask]:
    """Return the amounts of a `resources`."""
    for field in ("limits", "requests"):
        for name, value in mapping(resources.get(field)).items():
            yield Ask(name, value, (*path, field, name))


def is_placeholder(value: object) -> bool:
    """Tell whether somebody's template puts the real value there later."""
    return isinstance(value, str) and any(mark in value for mark in _PLACEHOLDERS)


def _is_of_interest(unit: Unit) -> bool:
    """Tell whether it asks for anything that is not plain cpu and memory, or may mean to."""
    if unit.is_vm:
        return bool(pods.vm_devices(unit.spec) or unit.spec.get("resourceClaims"))
    return (
        any("/" in name or name not in _PLAIN for name in unit.paths)
        or "resourceClaims" in unit.spec
        or "resources" in unit.spec
        or any("gpu" in key for key in mapping(unit.template.metadata.get("annotations")))
        or _has_odd_resources(unit.spec)
    )


_PLAIN = ("cpu", "memory", "ephemeral-storage")


def _has_odd_resources(spec: Object) -> bool:
    return any(
        key not in ("limits", "requests")
        for field in ("containers", "initContainers")
        for container in pods.containers(spec, field)
        for key in mapping(container.get("resources"))
    )


def _loose(item: Object) -> Iterator[Ask]:
    """Return extended resources that an object asks for without a Pod's spec: a model server's."""
    waiting: list[tuple[Path, Any]] = [((), item)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [((*path, index), value[index]) for index in reversed(range(len(value)))]
        elif isinstance(value, dict):
            if path and path[-1] in _RESOURCES:
                yield from (ask for ask in amounts_of(value, path) if is_extended(ask.name))
            inner = [key for key in value if key not in pods.NOT_WALKED and value[key]]
            waiting += [((*path, key), value[key]) for key in reversed(inner)]
