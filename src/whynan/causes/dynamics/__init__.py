"""The course of the training."""
