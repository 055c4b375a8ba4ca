"""The scheduler's configuration: its default profile, and one for each filter to be asked alone."""

from gpuwl.controlplane import components
from gpuwl.k8s.objects import Object
from gpuwl.placement import extender

FILTERS = (
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
)
"""The default profile's filters, in the order in which it asks them."""
FIT = "NodeResourcesFit"
ALL = "all-filters"
REQUESTS_A_SECOND = 5000
"""By default the scheduler makes 50, which would be its limit."""
_VERSION = "kubescheduler.config.k8s.io/v1"
_FIT_ARGUMENTS = {
    "apiVersion": _VERSION,
    "kind": "NodeResourcesFitArgs",
    "scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]},
}
"""Each profile needs them for extenders with resources of their own, also one without that plugin."""


def only(plugin: str) -> str:
    """Return the name of the profile that has this filter alone."""
    return f"only-{plugin.lower()}"


def configuration(address: str) -> Object:
    """Return a KubeSchedulerConfiguration with an extender at that address.

    The default profile stays as it is. No other one ever evicts a Pod.
    """
    clients = {"kubeconfig": components.SCHEDULER_KUBECONFIG}
    managed = [{"name": extender.RESOURCE, "ignoredByScheduler": True}]
    listener = {"urlPrefix": address, "filterVerb": "filter", "nodeCacheCapable": True}
    return {
        "apiVersion": _VERSION,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {**clients, "qps": REQUESTS_A_SECOND, "burst": REQUESTS_A_SECOND},
        "profiles": [
            {"schedulerName": "default-scheduler"},
            _all_filters(),
            *(_only(plugin) for plugin in FILTERS),
        ],
        "extenders": [{**listener, "managedResources": managed}],
    }


def _all_filters() -> Object:
    never = {"postFilter": {"disabled": [{"name": "*"}]}}
    return {"schedulerName": ALL, "percentageOfNodesToScore": 100, "plugins": never}


def _only(plugin: str) -> Object:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", plugin)]
    several = {"disabled": [{"name": "*"}], "enabled": enabled}
    return {
        "schedulerName": only(plugin),
        "percentageOfNodesToScore": 100,
        "plugins": {"multiPoint": several},
        "pluginConfig": [{"name": FIT, "args": _FIT_ARGUMENTS}],
    }
