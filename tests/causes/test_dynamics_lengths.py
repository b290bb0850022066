"""Labels that fill the batch, sums over long dimensions, embeddings without a norm: told from records of literals."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.causes.builders import bad, born, course, op, ranked, stats, value, verdict

APART = course([1.0, 1.2, 0.9, 3.0, 50.0, 4e3, 7e8], ratio=[0.1, 0.2, 0.3, 0.8, 3, 90, 1e4])
WEIGHT = value("mat2", shape=(8, 1), source="parameter", name="weight")


def labelled(zero: int = 64, *, high: float = 20.0, shape=(64, 1), labels: float = 0.0, **rest):
    """A cross-entropy by hand, whose logarithm met the probability 0."""
    layer = op(0, "addmm", value("mat1", low=0, high=1, from_batch=True), WEIGHT, out=stats(shape, low=0, high=high))
    squash = op(1, "sigmoid", value("input", of=0, shape=shape, low=0, high=high), out=stats(shape, low=0.5, high=1.0))
    turned = op(2, "rsub", value("input", of=1, shape=shape, low=0.5, high=1.0), out=stats(shape, low=0.0, high=0.5, zero=1))
    log = op(3, "log", value("input", 0.0, of=2, shape=shape, low=0.0, high=0.5, zero=1), out=bad(shape, neginf=1))
    known = stats(shape, low=labels, high=0.0 if zero == 64 else 1.0, zero=zero)
    label = replace(value("input", stats=known, from_batch=True), identity=3)
    negated = op(4, "rsub", label, out=stats(shape, low=0, high=1))
    product = op(5, "mul", value("input", of=3, stats=log.outputs[0]), replace(label, role="other"), out=bad(shape))
    return born(log, layer, squash, turned, after=(negated, product), **rest)


def test_one_label_fills_the_batch() -> None:
    assert ranked(labelled())[:2] == ["class-imbalance", "log-of-zero"]
    assert ranked(labelled(zero=62))[0] == "class-imbalance"
    assert "100 %" in (verdict("class-imbalance", labelled()) or pytest.fail("silent")).summary


def test_labels_that_do_not_fill_the_batch() -> None:
    assert ranked(labelled(zero=40))[0] == "log-of-zero"
    assert verdict("class-imbalance", labelled(zero=40)) is None
    assert verdict("class-imbalance", labelled(high=9.0)) is None
    assert verdict("class-imbalance", labelled(shape=(4, 16))) is None
    assert verdict("class-imbalance", labelled(shape=(4, 1))) is None
    assert verdict("class-imbalance", labelled(labels=-1.0)) is None


def likelihood(share: float | None, weight: float = 1.0, **rest):
    layer = op(0, "addmm", value("mat1", low=0, high=1, from_batch=True), WEIGHT, out=stats((64, 3), low=-9, high=40))
    logs = op(1, "log_softmax", value("logits", of=0, shape=(64, 3), low=-9, high=40), out=stats((64, 3), low=-50, high=0))
    target = replace(value("target", shape=(64,), dtype="int64", low=0, high=2, from_batch=True), share=share)
    weights = value("weight", shape=(3,), low=1, high=weight, source="input")
    given = value("log_probabilities", of=1, shape=(64, 3), low=-50, high=0)
    return born(op(2, "nll_loss", given, target, weights, out=bad((), posinf=1)), layer, logs, **rest)


def test_share_of_whole_numbers() -> None:
    assert ranked(likelihood(0.97))[0] == "class-imbalance"
    assert verdict("class-imbalance", likelihood(0.5)) is None
    assert verdict("class-imbalance", likelihood(None)) is None


def test_weight_of_the_rare_label() -> None:
    assert ranked(likelihood(0.97, 5000.0, trend=APART))[0] == "class-imbalance"
    assert ranked(likelihood(0.97, 2.0, trend=APART))[0] == "lr-too-high"
    assert ranked(likelihood(0.5, 5000.0, trend=APART))[0] == "lr-too-high"


def pooled(most: float, length: int = 2048, dtype: str = "float32", **rest):
    """A sum over tokens, and the exponential of it."""
    layer = op(0, "addmm", value("mat1", low=0, high=1, from_batch=True), WEIGHT, out=stats((4, length, 8), low=0, high=3.0, dtype=dtype))
    given = value("input", of=0, shape=(4, length, 8), low=0, high=3.0, dtype=dtype)
    total = op(1, "sum", given, out=stats((4, 8), low=0, high=most, dtype=dtype))
    exponent = value("input", most, of=1, shape=(4, 8), low=0, high=most, dtype=dtype)
    return born(op(2, "exp", exponent, out=bad((4, 8), dtype, posinf=3)), layer, total, **{"step": 0, **rest})


def test_exponential_of_a_sum_over_many_tokens() -> None:
    assert ranked(pooled(900.0))[:2] == ["length-not-normalised", "exp-overflow"]
    assert "2048" in (verdict("length-not-normalised", pooled(900.0)) or pytest.fail("silent")).summary


def test_sum_that_is_not_to_blame() -> None:
    assert verdict("length-not-normalised", pooled(900.0, 8)) is None
    assert verdict("length-not-normalised", pooled(9e9)) is None
    assert verdict("length-not-normalised", pooled(4.0)) is None
    assert verdict("length-not-normalised", pooled(900.0, trend=APART)) is None


def test_sum_that_overflowed_itself_in_half_precision() -> None:
    terms = value("input", shape=(4, 4096, 8), dtype="float16", low=0, high=90.0, source="parameter")
    assert ranked(born(op(0, "sum", terms, out=bad((4, 8), "float16", posinf=3))))[0] == "length-not-normalised"
    loss = born(op(0, "sum", terms, out=bad((), "float16", posinf=1)))
    assert ranked(loss)[0] == "fp16-overflow"
    assert verdict("length-not-normalised", loss) is None


@pytest.mark.parametrize("given", [stats((0, 0)), stats(()), stats((4, 99), nan=3), stats((200,), "")])
def test_sum_of_which_little_is_known(given) -> None:
    assert verdict("length-not-normalised", born(op(0, "sum", value("input", stats=given), out=bad((), posinf=1)))) is None


def scores(size: int = 64, *, step: int = 0, dtype: str = "float32", high: float = 95.0, divided: bool = False, then: str = "mean", **rest):
    """Products of two encoders' outputs, exponentiated."""
    encoded = stats((4, size), low=-4, high=4, dtype=dtype)
    both = [op(i, "addmm", value("mat1", low=0, high=1, from_batch=True), WEIGHT, out=encoded) for i in (0, 1)]
    before = [*both]
    if divided:
        norm = op(2, "linalg_vector_norm", value("input", of=0, shape=(4, size)), out=stats((4, 1), low=3, high=4))
        unit = value("divisor", of=2, shape=(4, 1), low=3, high=4)
        before += [norm, op(3, "div", value("dividend", of=0, shape=(4, size)), unit, out=stats((4, size), low=-1, high=1))]
    pair = (
        value("input", of=3 if divided else 0, shape=(4, size), low=-4, high=4, dtype=dtype),
        value("mat2", of=1, shape=(size, 4), low=-4, high=4, dtype=dtype),
    )
    at = len(before)
    before.append(op(at, "mm", *pair, out=stats((4, 4), low=-9, high=high, dtype=dtype)))
    exponent = value("input", high, of=at, shape=(4, 4), low=-9, high=high, dtype=dtype)
    born_at = op(at + 1, "exp", exponent, out=bad((4, 4), dtype, posinf=1))
    read = op(at + 2, then, value("input", of=at + 1, stats=born_at.outputs[0]), value("mat2", of=1), out=bad((4, 8)))
    return born(born_at, *before, after=(read,), step=step, **rest)


def test_products_that_nothing_scales_in_the_first_steps() -> None:
    assert ranked(scores())[:2] == ["length-not-normalised", "exp-overflow"]
    assert verdict("length-not-normalised", scores(16)) is None
    assert verdict("embedding-norm-growth", scores()) is None


def test_attention_stays_a_matter_of_the_scale() -> None:
    assert ranked(scores(step=500, then="bmm"))[0] == "length-not-normalised"


def test_products_that_are_scaled() -> None:
    birth, session = scores()
    scaled = op(4, "div", value("dividend", of=2), out=stats((4, 4), low=-9, high=95.0), scalars={"other": 8.0})
    assert verdict("length-not-normalised", (birth, replace(session, operations=[*session.operations[:4], scaled]))) is None


def test_embeddings_that_grew_without_a_norm() -> None:
    assert ranked(scores(step=200))[0] == "embedding-norm-growth"
    assert ranked(scores(16, step=200))[:2] == ["embedding-norm-growth", "exp-overflow"]


def test_embeddings_that_have_a_norm() -> None:
    assert verdict("embedding-norm-growth", scores(step=200, divided=True)) is None
    assert verdict("embedding-norm-growth", scores(step=200, high=5.0)) is None


def test_layer_is_no_pair_of_embeddings() -> None:
    layer = op(0, "addmm", value("mat1", low=0, high=1, from_batch=True), WEIGHT, out=stats((4, 64), low=-4, high=90))
    case = born(op(1, "exp", value("input", 90.0, of=0, low=-4, high=90), out=bad(posinf=1)), layer, step=200)
    assert ranked(case)[0] == "exp-overflow"
    assert verdict("embedding-norm-growth", case) is None


def product_and_sum(of: tuple[int, int], out=None):
    """(a * b).sum(...) in half precision, whose sum overflowed."""
    half = {"shape": (32, 64), "dtype": "float16"}
    both = [op(i, "addmm", value("mat1", low=0, high=1, from_batch=True), WEIGHT, out=stats(low=-60, high=60, **half)) for i in (0, 1)]
    pair = (value("input", of=of[0], low=-60, high=60, **half), value("other", of=of[1], low=-60, high=60, **half))
    product = op(2, "mul", *pair, out=stats(low=-3600, high=3600, **half))
    total = op(3, "sum", value("input", of=2, low=-3600, high=3600, **half), out=bad(out or (32,), "float16", posinf=1))
    return born(total, *both, product, step=200)


def test_similarity_that_is_a_product_and_a_sum() -> None:
    assert "embedding-norm-growth" in ranked(product_and_sum((0, 1)))
    for square in (product_and_sum((0, 0)), product_and_sum((0, 1), out=(1,))):
        assert verdict("embedding-norm-growth", square) is None
    assert ranked(product_and_sum((0, 0), out=(1,)))[0] == "fp16-overflow"


def test_embeddings_in_a_run_that_came_apart() -> None:
    assert ranked(scores(step=200, trend=APART))[0] == "lr-too-high"


@pytest.mark.parametrize("number", [math.nan, math.inf, None])
def test_products_of_which_little_is_known(number) -> None:
    birth, session = scores(step=200)
    nothing = replace(session.operations[0].outputs[0], min=None, max=None, absmax=None)
    unknown = [replace(one, outputs=(nothing,)) for one in session.operations]
    operation = replace(birth.operation, inputs=tuple(replace(one, constant=number) for one in birth.operation.inputs))
    unknown[operation.index] = operation
    for name in ("embedding-norm-growth", "length-not-normalised", "class-imbalance"):
        verdict(name, (replace(birth, operation=operation), replace(session, operations=unknown)))
