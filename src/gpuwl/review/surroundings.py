"""What a review knows beside the workloads: nodes, Pods, quotas, and what operators were told.

Everything is taken one object at a time and only what findings need is kept. What was never given
is not known to be absent: each `…_seen` says so, and `whole` that a cluster was asked.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuwl.k8s.documents import Document
from gpuwl.k8s.objects import Object
from gpuwl.k8s.pods import mapping, text
from gpuwl.review.nodes import NodeIndex

EXTENDED_OF_CLASS = "deviceclass.resource.kubernetes.io/"
"""Before a DeviceClass's name: the extended resource that every class is (KEP-5004)."""
DRA_LABEL = "nvidia.com/gpu.deploy.dra-driver"

Named = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Permission:
    """One entry of permittedHostDevices: who advertises it, and whether it is a PCI device."""

    external: bool
    kind: str


@dataclass(frozen=True)
class Quota:
    """A ResourceQuota: its place, `hard` and `used` (empty where its status is not there)."""

    named: Named
    hard: Object
    used: Object
    scoped: bool


@dataclass
class Surroundings:
    """What is known. `permitted` is None where no KubeVirt or HyperConverged is in view."""

    nodes: NodeIndex = field(default_factory=NodeIndex)
    whole: bool = False
    permitted: dict[str, Permission] | None = None
    classes: dict[str, str] = field(default_factory=dict)
    classes_seen: bool = False
    sliced_nodes: set[str] = field(default_factory=set)
    slices_seen: bool = False
    claims: set[Named] = field(default_factory=set)
    claim_templates: set[Named] = field(default_factory=set)
    quotas: list[Quota] = field(default_factory=list)
    limits: list[tuple[Named, list[Object]]] = field(default_factory=list)
    policies: list[tuple[Object, Document | None]] = field(default_factory=list)
    gpu_clusters: list[Object] = field(default_factory=list)

    def add(self, item: Object, document: Document | None = None) -> bool:
        """Take an object that is none to be reviewed as a workload; tell whether it was one."""
        kind = text(item.get("kind"))
        if kind == "ClusterPolicy" and _group(item) == "nvidia.com":
            self.policies.append((item, document))
            return True
        take = _TAKEN.get((_group(item), kind))
        if take is not None:
            take(self, item)
        return take is not None

    def extended_by_class(self, name: str) -> bool:
        """Tell whether a DeviceClass in view gives this extended resource."""
        implicit = name.removeprefix(EXTENDED_OF_CLASS)
        return name in self.classes.values() or (implicit != name and implicit in self.classes)

    @property
    def shows_dra(self) -> bool:
        """Tell whether nodes or slices in view show that cards are given by DRA."""
        return bool(self.sliced_nodes or self.nodes.labelled(DRA_LABEL, "true"))


def _group(item: Object) -> str:
    """Return the API group, empty for the core group."""
    return text(item.get("apiVersion")).rpartition("/")[0]


def _named(item: Object) -> Named:
    metadata = mapping(item.get("metadata"))
    return text(metadata.get("namespace")) or "default", text(metadata.get("name"))


def _add_node(known: Surroundings, item: Object) -> None:
    known.nodes.add(item)


def _add_class(known: Surroundings, item: Object) -> None:
    known.classes_seen = True
    known.classes[_named(item)[1]] = text(mapping(item.get("spec")).get("extendedResourceName"))


def _add_slice(known: Surroundings, item: Object) -> None:
    known.slices_seen = True
    spec = mapping(item.get("spec"))
    if text(spec.get("driver")).endswith("nvidia.com") and spec.get("devices"):
        known.sliced_nodes.add(text(spec.get("nodeName")))
    known.sliced_nodes.discard("")


def _add_claim(known: Surroundings, item: Object) -> None:
    known.claims.add(_named(item))


def _add_claim_template(known: Surroundings, item: Object) -> None:
    known.claim_templates.add(_named(item))


def _add_quota(known: Surroundings, item: Object) -> None:
    spec, status = mapping(item.get("spec")), mapping(item.get("status"))
    scoped = bool(spec.get("scopes") or spec.get("scopeSelector"))
    hard, used = mapping(spec.get("hard")), mapping(status.get("used"))
    known.quotas.append(Quota(_named(item), hard, used, scoped))


def _add_limits(known: Surroundings, item: Object) -> None:
    found = mapping(item.get("spec")).get("limits")
    limits = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    known.limits.append((_named(item), limits))


def _add_kubevirt(known: Surroundings, item: Object) -> None:
    configuration = mapping(mapping(item.get("spec")).get("configuration"))
    _permit(known, mapping(configuration.get("permittedHostDevices")))


def _add_hyperconverged(known: Surroundings, item: Object) -> None:
    _permit(known, mapping(mapping(item.get("spec")).get("permittedHostDevices")))


PERMITTED_LISTS = {
    "pciHostDevices": "PCI",
    "mediatedDevices": "mediated",
    "usb": "USB",
    "usbHostDevices": "USB",
}
"""The lists of permittedHostDevices, in KubeVirt's and in HyperConverged's spelling."""


def _permit(known: Surroundings, lists: Object) -> None:
    known.permitted = known.permitted if known.permitted is not None else {}
    for key, kind in PERMITTED_LISTS.items():
        found = lists.get(key)
        for entry in found if isinstance(found, list) else ():
            entry = mapping(entry)  # noqa: PLW2901 - a stranger's entry
            name = text(entry.get("resourceName"))
            if name and entry.get("disabled") is not True:
                external = entry.get("externalResourceProvider") is True
                known.permitted[name] = Permission(external, kind)


def _add_gpu_cluster(known: Surroundings, item: Object) -> None:
    known.gpu_clusters.append(item)


_DRA = "resource.k8s.io"
_TAKEN: dict[tuple[str, str], Callable[[Surroundings, Object], None]] = {
    ("", "Node"): _add_node,
    ("", "ResourceQuota"): _add_quota,
    ("", "LimitRange"): _add_limits,
    (_DRA, "DeviceClass"): _add_class,
    (_DRA, "ResourceSlice"): _add_slice,
    (_DRA, "ResourceClaim"): _add_claim,
    (_DRA, "ResourceClaimTemplate"): _add_claim_template,
    ("kubevirt.io", "KubeVirt"): _add_kubevirt,
    ("hco.kubevirt.io", "HyperConverged"): _add_hyperconverged,
    ("nvidia.com", "GPUCluster"): _add_gpu_cluster,
}
"""Group and kind of what is surroundings, and who takes it."""
