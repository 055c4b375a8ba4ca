"""Cards that DRA offers: each counted once, by the classes that it can serve."""

from pathlib import Path
from typing import Any

from tests.inventory.clusters import GPU, container, dumped, node, pod

from gpuwl.inventory import sources, sums
from gpuwl.inventory.model import Inventory, Mark, Use

Item = dict[str, Any]
DRIVER = "gpu.nvidia.com"
API = {"apiVersion": "resource.k8s.io/v1"}


def device_class(name: str, *expressions: str) -> Item:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {
        **API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


CLASSES = [
    device_class(
        name, f"device.driver == 'gpu.nvidia.com' && device.attributes['{DRIVER}'].type == '{kind}'"
    )
    for name, kind in (("gpu.nvidia.com", "gpu"), ("vfio.gpu.nvidia.com", "vfio"))
]


def device(name: str, kind: str, address: str, **more: Any) -> Item:
    attributes = {
        "type": {"string": kind},
        "resource.kubernetes.io/pciBusID": {"string": address},
    }
    return {"name": name, "attributes": attributes, **more}


def slice_of(name: str, on: str, *devices: Item, driver: str = DRIVER, generation: int = 1) -> Item:
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": on, "pool": pool, "devices": list(devices)}
    return {**API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def claim(name: str, wanted: str, *results: tuple[str, str], count: int = 1) -> Item:
    exactly = {"deviceClassName": wanted, "count": count}
    allocated = [{"driver": DRIVER, "pool": on, "device": which} for on, which in results]
    status = {"allocation": {"devices": {"results": allocated}}} if results else {}
    return {
        **API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        "status": status,
    }


def read(tmp_path: Path, nodes: list[Item], pods: list[Item], dra: list[Item]) -> Inventory:
    files = sources.Files(
        dumped(tmp_path / "nodes.json", nodes),
        dumped(tmp_path / "pods.json", pods),
        (dumped(tmp_path / "slices.json", dra),),
    )
    return sources.from_files(files)


BOTH = "gpu.nvidia.com + vfio.gpu.nvidia.com"


def test_a_card_that_is_two_devices_is_one_card(tmp_path: Path) -> None:
    devices = [
        device(f"{kind}-{n}", kind, f"0000:0{n}:00.0") for n in range(4) for kind in ("gpu", "vfio")
    ]
    dra = [
        *CLASSES,
        slice_of("s", "a", *devices),
        claim("mine", "gpu.nvidia.com", ("a", "gpu-0")),
        claim("vm", "vfio.gpu.nvidia.com", ("a", "vfio-1")),
        claim("waits", "gpu.nvidia.com", count=2),
    ]
    waits = pod("p", container(), resourceClaims=[{"name": "c", "resourceClaimName": "waits"}])
    row = sums.by_resource(read(tmp_path, [node("a")], [waits], dra))[0]
    assert (row.use, row.resource) == (Use.DRA, BOTH)
    assert (row.nodes, row.advertised, row.used, row.free, row.largest) == (1, 4, 2, 2, 2)
    assert (row.waiting, row.asked) == (1, 2)


def test_classes_of_single_kinds(tmp_path: Path) -> None:
    mig = f"device.attributes['{DRIVER}'].type == 'mig'"
    dra = [
        *CLASSES,
        device_class("mig.nvidia.com", f"device.driver == '{DRIVER}'", mig),
        device_class("other", "device.attributes['x'].size > 3"),
        slice_of("a", "a", device("gpu-0", "gpu", "0"), device("mig-0", "mig", "1")),
        slice_of("old", "b", device("gpu-9", "gpu", "9"), generation=1),
        slice_of("new", "b", device("gpu-0", "gpu", "0"), generation=2),
        slice_of(
            "channels", "a", device("c-0", "channel", "7"), driver="compute-domain.nvidia.com"
        ),
        claim("none", "gpu.nvidia.com"),
    ]
    rows = {
        row.resource: row.advertised
        for row in sums.by_resource(read(tmp_path, [node("a"), node("b")], [], dra))
    }
    assert rows == {"gpu.nvidia.com": 2, "mig.nvidia.com": 1}


def test_what_cannot_be_known_is_unknown(tmp_path: Path) -> None:
    dra = [*CLASSES, slice_of("a", "a", device("gpu-0", "gpu", "0"))]
    without_claims = sums.by_resource(read(tmp_path, [node("a")], [], dra))[0]
    assert (without_claims.advertised, without_claims.used, without_claims.free) == (1, None, None)
    parts = device("mig-0", "gpu", "0", consumesCounters=[{"counterSet": "s", "counters": {}}])
    dra = [*CLASSES, slice_of("a", "a", parts), claim("c", "gpu.nvidia.com")]
    assert sums.by_resource(read(tmp_path, [node("a")], [], dra))[0].advertised is None
    waits = pod("p", container(), resourceClaims=[{"name": "c", "resourceClaimName": "elsewhere"}])
    assert read(tmp_path, [node("a")], [waits], dra).unclaimed == 1


def test_a_node_that_offers_its_cards_twice_is_marked(tmp_path: Path) -> None:
    nodes = [node("a", amounts={GPU: "1"}), node("b", amounts={GPU: "0"})]
    dra = [
        *CLASSES,
        *[slice_of(on, on, device("gpu-0", "gpu", "0")) for on in "ab"],
        claim("c", "gpu.nvidia.com"),
    ]
    found = read(tmp_path, nodes, [], dra)
    assert [Mark.TWICE in one.marks for one in found.nodes.values()] == [True, False]


def test_a_name_that_a_claim_provides_is_not_counted_again(tmp_path: Path) -> None:
    made = {
        "requestMappings": [{"resourceName": GPU, "requestName": "r", "containerName": "c"}],
        "resourceClaimName": "p-extended-resources-x",
    }
    on = pod("p", container({GPU: "1"}), on="a", status={"extendedResourceClaimStatus": made})
    dra = [
        *CLASSES,
        slice_of("a", "a", device("gpu-0", "gpu", "0")),
        claim("p-extended-resources-x", "gpu.nvidia.com", ("a", "gpu-0")),
    ]
    found = read(tmp_path, [node("a")], [on], dra)
    assert {row.resource: row.used for row in sums.by_resource(found)} == {"gpu.nvidia.com": 1}
    assert Mark.OVERCOMMITTED not in found.nodes["a"].marks
