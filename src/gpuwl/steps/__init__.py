"""The eight steps of the lab, in order."""

from gpuwl.lab.step import Step
from gpuwl.steps import (
    s1_labels,
    s2_operands,
    s3_resources,
    s4_container,
    s5_passthrough,
    s6_vgpu,
    s7_cross,
    s8_consistency,
)

STEPS: tuple[Step, ...] = (
    s1_labels.STEP,
    s2_operands.STEP,
    s3_resources.STEP,
    s4_container.STEP,
    s5_passthrough.STEP,
    s6_vgpu.STEP,
    s7_cross.STEP,
    s8_consistency.STEP,
)
