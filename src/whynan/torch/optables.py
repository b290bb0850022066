"""What the record must know of single operations: data, one table a question.

Names are aten's without overload (`aten.log_.default` is `log`). An operation that stands in no table is recorded all the same, with
its schema's argument names as roles.
"""

from __future__ import annotations

CANONICAL = {
    "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub", "absolute": "abs", "_softmax": "softmax",
    "_log_softmax": "log_softmax", "_safe_softmax": "softmax", "native_layer_norm": "layer_norm", "native_group_norm": "group_norm",
    "native_batch_norm": "batch_norm", "_native_batch_norm_legit": "batch_norm", "cudnn_batch_norm": "batch_norm",
    "_batch_norm_with_update": "batch_norm", "nll_loss_forward": "nll_loss", "nll_loss2d_forward": "nll_loss2d",
    "_ctc_loss": "ctc_loss", "_linalg_slogdet": "linalg_slogdet", "_linalg_svd": "linalg_svd", "_linalg_eigh": "linalg_eigh",
    "_linalg_det": "linalg_det", "_linalg_solve_ex": "linalg_solve", "linalg_cholesky_ex": "linalg_cholesky",
    "linalg_inv_ex": "linalg_inv", "_cdist_forward": "cdist", "_euclidean_dist": "cdist", "_embedding_bag": "embedding_bag",
    "_prelu_kernel": "prelu", "special_log1p": "log1p", "special_expm1": "expm1", "_foreach_addcdiv": "addcdiv",
    "_foreach_addcmul": "addcmul", "_foreach_add": "add", "_foreach_mul": "mul", "_foreach_div": "div", "_foreach_sqrt": "sqrt",
    "_foreach_lerp": "lerp", "_foreach_sub": "sub", "_foreach_pow": "pow", "_foreach_norm": "linalg_vector_norm",
    "_foreach_reciprocal": "reciprocal", "_foreach_rsqrt": "rsqrt", "_fused_adam": "adam", "_fused_adamw": "adamw", "_fused_sgd": "sgd",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_cudnn_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math": "scaled_dot_product_attention", "linalg_vector_norm": "linalg_vector_norm",
}  # fmt: skip

# canonical operation -> roles of its arguments by their schema names
ROLES = {
    "div": {"self": "dividend", "other": "divisor"},
    "reciprocal": {"self": "divisor"},
    "rsqrt": {"self": "input"},
    "addcdiv": {"self": "input", "tensor1": "dividend", "tensor2": "divisor"},
    "pow": {"self": "base", "exponent": "exponent"},
    "masked_fill": {"self": "input", "mask": "mask", "value": "value"},
    "where": {"condition": "condition", "self": "input", "other": "other"},
    "softmax": {"self": "logits"},
    "log_softmax": {"self": "logits"},
    "logsumexp": {"self": "logits"},
    "scaled_dot_product_attention": {"query": "query", "key": "key", "value": "value", "attn_mask": "mask"},
    "nll_loss": {"self": "log_probabilities", "target": "target", "weight": "weight"},
    "nll_loss2d": {"self": "log_probabilities", "target": "target", "weight": "weight"},
    "mse_loss": {"self": "input", "target": "target"},
    "smooth_l1_loss": {"self": "input", "target": "target"},
    "binary_cross_entropy": {"self": "input", "target": "target", "weight": "weight"},
    "ctc_loss": {"log_probs": "log_probabilities", "targets": "target"},
}  # fmt: skip
DEFAULT_ROLES = {"self": "input"}

# kernels that write arguments which their schema does not mark, and when
HIDDEN_WRITES = {
    "native_batch_norm": ("running_mean", "running_var"),
    "cudnn_batch_norm": ("running_mean", "running_var"),
    "miopen_batch_norm": ("running_mean", "running_var"),
    "_batch_norm_with_update": ("running_mean", "running_var"),
}

# random and empty tensors made inside the step; filled with numbers that no operand explains
RANDOM = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like normal uniform bernoulli exponential log_normal cauchy geometric "
    "multinomial random poisson".split()
)
# functions of constants alone: what they hold is the programmer's intention
CREATION = frozenset("full full_like fill scalar_tensor zeros ones zeros_like ones_like new_full new_zeros new_ones "
    "arange linspace eye "
                     "empty empty_like empty_strided new_empty zero constant_pad_nd masked_fill lift_fresh new_empty_strided".split())  # fmt: skip  # noqa: E501


def kernel_name(kernel: str) -> str:
    """`aten.log_.default` -> `log`; the in-place and out forms are the same operation."""
    parts = kernel.split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    return name.rstrip("_") if not name.startswith("__") else name.strip("_")


def canonical(kernel: str) -> str:
    name = kernel_name(kernel)
    return CANONICAL.get(name, name)


def role(op: str, argument: str) -> str:
    return ROLES.get(op, DEFAULT_ROLES).get(argument, argument if argument != "self" else "input")
