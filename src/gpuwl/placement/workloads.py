"""From what people write to the Pods that a scheduler would see."""

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuwl.controlplane import store
from gpuwl.k8s import documents, kubevirt, pods
from gpuwl.k8s.objects import Object
from gpuwl.placement import world as worlds
from gpuwl.placement.world import World, label_of

CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
SERVERS_OWN = frozenset({"system-node-critical", "system-cluster-critical"})


@dataclass(frozen=True)
class Workload:
    """Pods that belong together: one of each is a copy. `name` says which object they come from."""

    name: str
    pods: tuple[Object, ...]


@dataclass(frozen=True)
class Workloads:
    """What is to be placed, what came along with it, and what could not be told, by how many."""

    workloads: tuple[Workload, ...] = ()
    others: tuple[Object, ...] = ()
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def pods(self) -> list[Object]:
        """All Pods, in order."""
        return [pod for workload in self.workloads for pod in workload.pods]

    def times(self, count: int) -> "Workloads":
        """Return so many copies of everything, each Pod with a number behind its name."""
        if count == 1:
            return self
        copies = (
            Workload(each.name, tuple(_renamed(pod, number) for pod in each.pods))
            for number in range(1, count + 1)
            for each in self.workloads
        )
        return replace(self, workloads=tuple(copies))


def _renamed(pod: Object, number: int) -> Object:
    name = f"{pod['metadata']['name']}-{number}"
    return {**pod, "metadata": {**pod["metadata"], "name": name}}


def read(paths: Iterable[Path | str]) -> Workloads:
    """Read manifests. Raises InputError where one cannot be read."""
    found: list[Workload] = []
    others: list[Object] = []
    left_out: Counter[str] = Counter()
    for document in documents.read(paths):
        if isinstance(document, documents.Unrendered):
            left_out[f"files that have to be rendered first ({document.command})"] += 1
            continue
        item = document.object
        made = list(_pods(item))
        if item.get("kind") == "DaemonSet":
            left_out["DaemonSets, which make one Pod on each node"] += 1
        elif made:
            metadata = pods.mapping(item.get("metadata"))
            found.append(Workload(f"{item['kind']} {metadata.get('name', '')}", tuple(made)))
        elif item.get("kind") in store.FOLDERS or item.get("kind") == "ResourceClaimTemplate":
            others.append(item)
        else:
            left_out[f"{item.get('kind')} objects, which hold no Pod template"] += 1
    return Workloads(tuple(found), tuple(others), left_out)


def _pods(item: Object) -> Iterator[Object]:
    """Return the Pods that an object makes, at its replicas."""
    if item.get("kind") == "Pod":
        yield _made(item, pods.mapping(item.get("metadata")), pods.mapping(item.get("spec")), "")
        return
    templates = pods.templates(item)
    machines = pods.vm_templates(item)
    alone = len(templates) + len(machines) == 1
    for number, template in enumerate([*templates, *machines]):
        stem = template.name if alone else f"{template.name}-{number}"
        for index in range(template.count):
            name = stem if alone and template.count == 1 else f"{stem}-{index}"
            if template in machines:
                namespace = template.namespace or "default"
                yield kubevirt.launcher(template.spec, template.metadata, name, namespace)
            else:
                metadata = {**template.metadata, "namespace": template.namespace, "name": name}
                yield _made(item, metadata, template.spec, name)


def _made(item: Object, metadata: Object, spec: Object, name: str) -> Object:
    named = name or str(metadata.get("name") or metadata.get("generateName") or "pod").rstrip("-.")
    namespace = metadata.get("namespace") or pods.mapping(item.get("metadata")).get("namespace")
    found = {"labels": metadata.get("labels"), "name": named, "namespace": namespace or "default"}
    volumes = spec.get("volumes")
    kept = {**spec, "volumes": volumes if isinstance(volumes, list) else []}
    return worlds.pod({"metadata": found, "spec": kept})


def waiting(world: World) -> Workloads:
    """Return the Pods that wait in a world, as they are to be created again."""
    return Workloads(tuple(Workload(f"Pod {label_of(pod)}", (pod,)) for pod in world.waiting))


@dataclass(frozen=True)
class Prepared:
    """A world with what the Pods refer to, the Pods ready to be created, and their claims by Pod."""

    world: World
    pods: list[Object]
    claims: dict[str, list[Object]]


def prepare(world: World, workloads: Workloads, evicted: Sequence[Object] = ()) -> Prepared:
    """Bring world and Pods into a form that the API server takes.

    Classes that a Pod names and nobody brought are made up from what the Pod itself says; volumes
    whose claims are not in view are left out. Both are counted in `left_out`.
    """
    left_out = world.left_out + workloads.left_out
    others = dict(world.claims)
    brought = [worlds.other(item) for item in workloads.others]
    others |= {worlds.identity(item): item for item in brought}
    templates = {
        key: item for key, item in others.items() if item["kind"] == "ResourceClaimTemplate"
    }
    others = {key: item for key, item in others.items() if key not in templates}
    maker = _Maker(replace(world, others=tuple(others.values())), templates, left_out)
    ready = [maker.ready(pod) for pod in [*evicted, *workloads.pods]]
    made = {**others, **maker.made}
    full = replace(world, others=tuple(made.values()), left_out=left_out)
    return Prepared(full, ready, maker.claims)


class _Maker:
    """Makes Pods ready, and collects what they need."""

    def __init__(self, world: World, templates: dict[str, Object], left_out: Counter[str]) -> None:
        self._world = world
        self._templates = templates
        self._left_out = left_out
        self.made: dict[str, Object] = {}
        self.claims: dict[str, list[Object]] = {}
        self._need(worlds.namespace("gpuwl-place"))

    def ready(self, pod: Object) -> Object:
        """Return a Pod that the API server takes."""
        spec = copy.deepcopy(pod["spec"])
        spec.pop("nodeName", None)
        for container in spec.get("containers", ()):
            container.pop("restartPolicy", None)
        namespace = pod["metadata"]["namespace"]
        self._need(worlds.namespace(namespace))
        self._priority(spec)
        self._runtime(spec)
        self._volumes(spec, namespace)
        metadata = {key: pod["metadata"].get(key) for key in ("name", "namespace", "labels")}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self._claims(made)
        return made

    def _need(self, item: Object) -> None:
        key = worlds.identity(item)
        if key not in self._world.claims:
            self.made.setdefault(key, item)

    def _priority(self, spec: Object) -> None:
        value, policy = spec.pop("priority", None), spec.pop("preemptionPolicy", None)
        name = spec.get("priorityClassName")
        if name in SERVERS_OWN:
            value = 2000001000 if name == "system-node-critical" else 2000000000
        if name is None and value:
            name = f"gpuwl-priority-{value}".replace("--", "-minus-")
            spec["priorityClassName"] = name
        if name and not self._world.has("PriorityClass", name):
            if value is None:
                self._left_out[f"PriorityClass {name}, taken for priority 0"] = 1
            item = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value or 0,
            }
            self._need(worlds.other({**item, **({"preemptionPolicy": policy} if policy else {})}))

    def _runtime(self, spec: Object) -> None:
        name = spec.get("runtimeClassName")
        if name and self._world.has("RuntimeClass", name):
            spec.pop("overhead", None)  # the class says it
        elif name:
            overhead = spec.pop("overhead", None)
            self._left_out[f"RuntimeClass {name}, with what it selects"] = 1
            item = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": name}
            item |= {"metadata": {"name": name}}
            more = {"overhead": {"podFixed": overhead}} if overhead else {}
            self._need(worlds.other({**item, **more}))
        elif spec.pop("overhead", None):
            self._left_out["overheads without a RuntimeClass"] += 1

    def _volumes(self, spec: Object, namespace: str) -> None:
        kept = []
        for volume in spec.pop("volumes", ()):
            name = volume["persistentVolumeClaim"].get("claimName")
            if self._world.has("PersistentVolumeClaim", name, namespace):
                kept.append(volume)
            else:
                self._left_out["volumes whose PersistentVolumeClaim is not in view"] += 1
        if kept:
            spec["volumes"] = kept

    def _claims(self, pod: Object) -> None:
        metadata = pod["metadata"]
        for claim in pod["spec"].get("resourceClaims") or ():
            name = claim.get("resourceClaimTemplateName")
            if not name:
                continue
            template = self._templates.get(f"ResourceClaimTemplate {metadata['namespace']}/{name}")
            if template is None:
                self._left_out[f"ResourceClaimTemplate {metadata['namespace']}/{name}"] += 1
                continue
            own = {
                "name": f"{metadata['name']}-{claim['name']}",
                "namespace": metadata["namespace"],
                "annotations": {CLAIM_NAME: claim["name"]},
            }
            inner = template["spec"]
            made = {"apiVersion": template["apiVersion"], "kind": "ResourceClaim", "metadata": own}
            self.claims.setdefault(label_of(pod), []).append({**made, "spec": inner["spec"]})
