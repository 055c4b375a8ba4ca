"""A lab on the GPU Operator's sandbox workloads, and the checker that people keep after it."""

__version__ = "0.2.0"
