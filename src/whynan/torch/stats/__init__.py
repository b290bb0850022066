"""What is worth watching in a training run, as plain numbers."""

from whynan.torch.stats.component_gradients import ComponentGradient, component_gradients

__all__ = ["ComponentGradient", "component_gradients"]
