"""Random names as clusters have them: nodes, device models, vGPU profiles, and near forms of these.

Each is of its kind by the exercise's rule and by the wider one of the checker: no device model ends
like a profile, and no letters behind a profile are one of NVIDIA's published attributes.
"""

import random
from string import ascii_uppercase

_POOLS = ("gpu", "worker", "rack-a", "host", "node", "ml", "pool-b", "dgx", "edge")
_OF_USES = ("container", "vm-passthrough", "vm-vgpu", "vgpu", "passthrough", "gpu-container")
_CHIPS = ("GA102GL", "AD102GL", "GH100", "TU104GL", "GV100GL", "GP102GL", "GB202GL", "GM107M")
_MODELS = ("A10", "L40S", "H200_SXM_141GB", "Tesla_T4", "RTX_6000", "A40", "GeForce_GTX_860M", "L4")
_MAKES = ("GRID_P40", "GRID_T4", "NVIDIA_L40S", "NVIDIA_A16", "Tesla_V100", "RTX6000", "NVIDIA_A40")


class Vocabulary:
    """Names by one source of randomness; no node name comes twice."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def node(self, *, of_use: bool = False) -> str:
        """Return a new node name; `of_use`: one that holds the word of a use."""
        while True:
            number = self._rng.randrange(1000)
            pool = self._rng.choice(_OF_USES if of_use else _POOLS)
            name = f"{pool}-{number}" + self._rng.choice(("", "", f".zone{number % 7}.internal"))
            if name not in self._used:
                self._used.add(name)
                return name

    def amount(self) -> str:
        """Return a quantity that is not zero."""
        return str(self._rng.choice((1, 2, 3, 4, 7, 8, 10, 16, 100)))

    def device(self) -> str:
        """Return a device model that looks like one: chip and model."""
        return f"nvidia.com/{self._rng.choice(_CHIPS)}_{self._rng.choice(_MODELS)}"

    def devices(self) -> list[str]:
        """Return device models whose ends, words or lengths mislead."""
        number = self._rng.randrange(10, 99)
        return [
            f"nvidia.com/AD{number}GL_L{number}S",  # digits and a capital letter, no hyphen
            f"nvidia.com/GA100_A100-SXM-{number}GB",  # hyphens, as some plugins leave them
            f"nvidia.com/{number}b{self._rng.randrange(10)}",  # a raw PCI id
            f"nvidia.com/TU{number}GL_GRID_RTX_{number}_vGPU",
            f"nvidia.com/GB{number}_NVIDIA_B{number}0",
        ]

    def profile(self) -> str:
        """Return a vGPU profile as the exercise has it: a make, two digits, Q."""
        return f"nvidia.com/NVIDIA_A10-{self._rng.choice((12, 24))}Q"

    def profiles(self) -> list[str]:
        """Return profiles of other makes, with one and three digits, and with other letters."""
        digit, letter = self._rng.randrange(1, 10), self._rng.choice(ascii_uppercase)
        makes = self._rng.sample(_MAKES, 4)
        return [
            f"nvidia.com/{makes[0]}-{digit}Q",
            f"nvidia.com/{makes[1]}-{digit}{digit}4Q",
            f"nvidia.com/{makes[2]}-{digit}B",
            f"nvidia.com/{makes[2]}-{digit}0C",
            f"nvidia.com/NVIDIA_A10-{digit}A",
            f"nvidia.com/{makes[3]}-{digit}{letter}",
            f"nvidia.com/NVIDIA_A100-1-{digit}C",
        ]

    def near_profiles(self) -> list[str]:
        """Return names that are almost profiles, and by the rule device models."""
        make, number = self._rng.choice(_MAKES), self._rng.randrange(1, 25)
        return [
            f"nvidia.com/{make}_{number}Q",  # no hyphen
            f"nvidia.com/{make}-{number}q",  # a small letter
            f"nvidia.com/{make}-{number}QX",  # letters behind
            f"nvidia.com/{make}-{number}Q_{self._rng.choice(('x', 'slice', 'old'))}",
            f"nvidia.com/{make}-Q",  # no digits
            f"nvidia.com/{make}-{number}",  # no letter
            f"nvidia.com/{make}-{number}-Q",
        ]

    def almost_gpu(self) -> list[str]:
        """Return names that begin like `nvidia.com/gpu` and are others."""
        return [
            "nvidia.com/gpu.shared",
            "nvidia.com/gpumem",
            f"nvidia.com/gpu-{self._rng.choice(('cores', 'memory', 'slice'))}",
            f"nvidia.com/mig-{self._rng.randrange(1, 5)}g.10gb",
        ]

    def foreign(self) -> list[str]:
        """Return names that are not below nvidia.com/."""
        return [
            "amd.com/gpu",
            "gpu.intel.com/i915",
            f"example.org/NVIDIA_A10-{self._rng.randrange(2, 24)}Q",
            f"nvidia.com.example.org/{self._rng.choice(_CHIPS)}_A10",
            "xnvidia.com/gpu",
        ]
