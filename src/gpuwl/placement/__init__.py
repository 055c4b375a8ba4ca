"""Where workloads would go, asked of the real scheduler. Behind `gpuwl place`."""
