"""Where to look in the catalogue: which causes go with what a user sees, and with which operations.

A cause may stand in several places, the likelier first. A cause of the course may break off at any operation, so it stands under an
operation only where that is its own.
"""

from __future__ import annotations

SYMPTOMS: dict[str, tuple[str, ...]] = {
    "The loss is NaN or infinite at the first step": (
        "log-of-zero", "div-zero-by-zero", "exp-overflow", "masked-softmax-row", "nan-in-data", "inf-in-data", "input-scale", "bad-init",
        "uninitialised-memory", "log-of-negative", "sqrt-of-negative", "pow-of-negative", "bad-class-weight", "temperature-too-small",
        "exploding-rnn", "inf-minus-inf", "zero-times-inf", "singular-matrix", "sentinel-overflow", "domain-boundary",
    ),
    "The loss is healthy for a while, then NaN or infinite from one step to the next": (
        "log-of-zero", "nan-in-data", "empty-reduction", "div-zero-by-zero", "exp-overflow", "sqrt-of-negative", "domain-boundary",
        "class-imbalance", "bad-lr-schedule", "fp16-overflow", "singular-matrix", "div-by-tiny", "checkpoint-precision",
    ),
    "The loss or the gradients grow for many steps, then overflow": (
        "lr-too-high", "bad-lr-schedule", "target-scale", "input-scale", "loss-weight", "bootstrap-divergence", "gradient-conflict",
        "embedding-norm-growth", "length-not-normalised", "exploding-rnn", "fp32-overflow",
    ),
    "The loss falls far below zero, then is -inf or NaN": ("unbounded-objective", "scale-collapse"),
    "A gradient is NaN or infinite although the loss is finite": (
        "sqrt-grad-at-zero", "where-grad-trap", "pow-grad-at-zero", "nan-times-zero-mask", "logsumexp-all-neginf", "svd-degenerate",
        "fp16-grad-overflow", "domain-boundary",
    ),
    "A parameter is NaN after an update although its gradient is finite": ("adam-eps-underflow", "optimizer-div-zero"),
    "Only in half precision": (
        "fp16-overflow", "eps-underflow", "fp16-constant-overflow", "fp16-grad-overflow", "adam-eps-underflow", "mask-sum-overflow",
        "log-of-zero", "exp-overflow", "exp-underflow", "checkpoint-precision",
    ),
    "Only some batches": (
        "nan-in-data", "inf-in-data", "empty-reduction", "masked-softmax-row", "bad-label", "bad-class-weight", "ctc-infeasible",
        "zero-variance-scale", "var-single-sample", "div-by-zero", "div-zero-by-zero", "nan-times-zero-mask", "sentinel-overflow",
        "logsumexp-all-neginf",
    ),
    "Only with long sequences or many samples": ("exploding-rnn", "length-not-normalised", "ctc-infeasible", "exp-underflow"),
    "Only the last batch, or a batch of one": ("var-single-sample", "zero-variance-scale", "empty-reduction"),
    "NaN in evaluation although the training goes on": ("poisoned-running-stats", "var-single-sample"),
    "In some runs and not in others, with the same seed": ("uninitialised-memory",),
    "After resuming from a checkpoint": ("checkpoint-precision", "bad-lr-schedule", "poisoned-running-stats"),
    "The exception that a matrix `is singular` or `not positive-definite`": ("singular-matrix",),
    "The exception that a decomposition `failed to converge`": ("svd-degenerate", "nan-in-data"),
    "The exception that probabilities are `inf`, `nan` or below 0 (`multinomial`, `Categorical`)": (
        "masked-softmax-row", "div-zero-by-zero", "exp-overflow", "exp-underflow", "lr-too-high",
    ),
    "The exception that elements `should be between 0 and 1` (`binary_cross_entropy`)": (
        "nan-in-data", "div-zero-by-zero", "exp-overflow", "lr-too-high",
    ),
}  # fmt: skip

OPERATIONS: dict[str, tuple[str, ...]] = {
    "`log`, `log2`, `log10`, `log1p`": ("log-of-zero", "log-of-negative", "eps-underflow", "bad-label", "class-imbalance"),
    "`/`, `div`, `reciprocal`, `rsqrt`": (
        "div-zero-by-zero", "div-by-zero", "div-by-tiny", "empty-reduction", "zero-variance-scale", "exp-underflow", "eps-underflow",
    ),
    "`exp`, `expm1`, `sinh`, `cosh`": (
        "exp-overflow", "exp-underflow", "temperature-too-small", "input-scale", "length-not-normalised", "embedding-norm-growth",
        "scale-collapse",
    ),
    "`softmax`, `log_softmax`": (
        "masked-softmax-row", "mask-sum-overflow", "fp16-constant-overflow", "temperature-too-small", "log-of-zero", "exp-underflow",
    ),
    "`logsumexp`": ("logsumexp-all-neginf",),
    "`sqrt`": ("sqrt-grad-at-zero", "sqrt-of-negative", "where-grad-trap"),
    "`norm`, `cdist`, a distance": ("sqrt-grad-at-zero", "div-zero-by-zero", "fp32-overflow"),
    "`pow`, `**`": ("pow-grad-at-zero", "pow-of-negative", "fp32-overflow"),
    "`acos`, `asin`, `atanh`, `acosh`, `erfinv`, `logit`": ("domain-boundary", "where-grad-trap"),
    "`where`, `masked_fill`, indexing with a mask": (
        "where-grad-trap", "nan-times-zero-mask", "fp16-constant-overflow", "mask-sum-overflow",
    ),
    "`std`, `var`": ("var-single-sample", "zero-variance-scale", "sqrt-grad-at-zero"),
    "`mean`, and a sum over a count": ("empty-reduction", "div-zero-by-zero", "length-not-normalised"),
    "`sum`, `cumsum`, `prod`": ("fp16-overflow", "fp32-overflow", "length-not-normalised"),
    "`+`, `-`, `*`": ("inf-minus-inf", "zero-times-inf", "mask-sum-overflow", "sentinel-overflow", "fp32-overflow", "fp16-overflow"),
    "`matmul`, `Linear`, `Conv`": ("fp16-overflow", "bad-init", "lr-too-high", "target-scale", "fp32-overflow", "nan-in-data"),
    "attention": ("masked-softmax-row", "mask-sum-overflow", "fp16-constant-overflow", "fp16-overflow"),
    "`RNN`, `LSTM`, `GRU`, a loop over time": ("exploding-rnn",),
    "`BatchNorm`, `LayerNorm`": ("poisoned-running-stats", "var-single-sample", "zero-variance-scale", "eps-underflow"),
    "`Embedding`, contrastive losses": ("embedding-norm-growth", "temperature-too-small"),
    "`cross_entropy`, `nll_loss`": ("empty-reduction", "bad-class-weight", "log-of-zero", "bad-label"),
    "`binary_cross_entropy`, `p.log()` and `(1 - p).log()`": ("log-of-zero", "class-imbalance", "bad-label"),
    "`mse_loss`": ("target-scale", "lr-too-high", "nan-in-data", "nan-times-zero-mask", "bootstrap-divergence", "loss-weight"),
    "`ctc_loss`": ("ctc-infeasible",),
    "`inv`, `solve`, `cholesky`, `logdet`": ("singular-matrix",),
    "`svd`, `eigh`": ("svd-degenerate",),
    "`half()`, `to(float16)`, autocast": ("fp16-overflow", "fp16-constant-overflow", "eps-underflow", "fp16-grad-overflow"),
    "`GradScaler`": ("fp16-grad-overflow", "fp16-overflow"),
    "`backward`": (
        "sqrt-grad-at-zero", "pow-grad-at-zero", "where-grad-trap", "svd-degenerate", "logsumexp-all-neginf", "fp16-grad-overflow",
    ),
    "`optimizer.step`": ("adam-eps-underflow", "optimizer-div-zero", "checkpoint-precision", "lr-too-high"),
    "a learning rate or its schedule": ("lr-too-high", "bad-lr-schedule"),
    "several losses added up, a GAN, a target network": (
        "loss-weight", "gradient-conflict", "unbounded-objective", "bootstrap-divergence", "scale-collapse",
    ),
    "`empty`, `Tensor(n)`, `new_empty`": ("uninitialised-memory",),
}  # fmt: skip
