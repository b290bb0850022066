"""A remedy is shown only where the record has what it is for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.causes.builders import bad, born, op, site, stats, value
from whynan.causes import catalogue
from whynan.core.catalogue import Advice, Cause, Entry, Verdict
from whynan.core.explain import explain
from whynan.core.prescribe import prescribe
from whynan.core.session import Birth, Session

Case = tuple[Birth, Session]
INF = math.inf
PLAIN = {"from_batch": True}
WEIGHT = {"source": "parameter"}


def remedies(case: Case, cause: str) -> dict[str, str]:
    """What is advised for the cause: the names, and the changes or sentences."""
    birth, session = case
    diagnoses = tuple(one for one in explain(birth, session, catalogue()) if one.cause == cause)
    assert diagnoses, "the cause is not diagnosed"
    return {remedy.name: remedy.change for remedy in prescribe(birth, diagnoses, catalogue())}


def log(argument: float, *before, of: int | None = None, **operand) -> Case:
    given = value("input", argument, of=of, low=argument, high=1.0, zero=int(argument == 0), **operand)
    return born(op(len(before), "log", given, out=bad(neginf=1) if argument == 0 else bad(nan=1)), *before)


def layer():
    return op(0, "addmm", value("mat1", **PLAIN), value("mat2", **WEIGHT), out=stats(low=-1, high=1))


def test_a_softmax_is_replaced_only_where_there_is_one() -> None:
    assert list(remedies(log(0.0, **PLAIN), "log-of-zero")) == ["floor-log-argument"]
    for maker in ("softmax", "sigmoid", "exp"):
        made = op(0, maker, value("logits"), out=stats(low=0, high=1, zero=1))
        assert "use-log-softmax" in remedies(log(0.0, made, of=0), "log-of-zero")
    product = op(0, "prod", value("input"), out=stats(low=0, high=1, zero=1))
    assert set(remedies(log(0.0, product, of=0), "log-of-zero")) == {"sum-logarithms", "floor-log-argument"}


def test_data_are_clipped_and_only_a_free_number_is_constrained() -> None:
    assert list(remedies(log(-0.5, **PLAIN), "log-of-negative")) == ["clip-data"]
    assert list(remedies(log(-0.5, layer(), of=0), "log-of-negative")) == ["constrain-log-argument", "use-log-parametrisation"]
    assert list(remedies(log(-0.5, **WEIGHT), "log-of-negative")) == ["constrain-log-argument", "use-log-parametrisation"]
    rest = op(1, "rsub", value("input", of=0), out=stats(low=-1, high=1), scalars={"other": 1})
    assert list(remedies(log(-0.5, layer(), rest, of=1), "log-of-negative")) == ["compute-otherwise"]


def quotient(dividend: float, least: float, kernel: str = "div", **rest) -> Case:
    by = value("divisor", 0.0, low=least, high=3.0, zero=1)
    made = bad(nan=1) if dividend == 0 else bad(posinf=1)
    return born(op(0, kernel, value("dividend", dividend, low=min(dividend, 0), high=max(dividend, 1)), by, out=made), **rest)


@pytest.mark.parametrize(("dividend", "cause"), [(3.0, "div-by-zero"), (0.0, "div-zero-by-zero")])
def test_a_divisor_of_either_sign_is_given_no_floor(dividend: float, cause: str) -> None:
    assert "floor-divisor" in remedies(quotient(dividend, 0.0), cause)
    assert "replace-zero-divisor" not in remedies(quotient(dividend, 0.0), cause)
    signed = remedies(quotient(dividend, -3.0), cause)
    assert "floor-divisor" not in signed
    assert "replace-zero-divisor" in signed


def test_a_power_has_a_base_and_a_quotient_a_divisor() -> None:
    power = born(op(0, "pow", value("base", 0.0, low=0, high=3, zero=1), out=bad(posinf=1), scalars={"exponent": -1}))
    assert list(remedies(power, "div-by-zero")) == ["floor-power-base"]
    assert list(remedies(quotient(3.0, 0.0), "div-by-zero")) == ["floor-divisor"]


def test_rows_are_left_out_only_where_others_of_the_batch_stay() -> None:
    assert "skip-empty-rows" in remedies(quotient(0.0, 0.0, samples=(2,)), "div-zero-by-zero")
    for rows in (None, (0, 1, 2, 3)):
        assert "skip-empty-rows" not in remedies(quotient(0.0, 0.0, samples=rows), "div-zero-by-zero")


def test_a_floor_of_one_only_where_it_changes_nothing_else() -> None:
    def by(**numbers: float) -> Case:
        return born(op(0, "div", value("dividend", 3.0), value("divisor", 1e-40, **numbers), out=bad(posinf=1)))

    assert "floor-divisor-at-one" in remedies(by(low=1e-40, high=1e-39), "div-by-tiny")
    assert "floor-divisor" in remedies(by(low=1e-40, high=0.5), "div-by-tiny")
    assert list(remedies(by(low=-0.5, high=0.5), "div-by-tiny")) == ["stay-in-logarithm"]


def test_cancellation_is_avoided_only_where_a_difference_rounded() -> None:
    def root(argument: float) -> Case:
        return born(op(0, "sqrt", value("input", argument, low=argument, high=1), out=bad(nan=1)))

    assert "avoid-cancellation" in remedies(root(-1e-7), "sqrt-of-negative")
    assert "avoid-cancellation" not in remedies(root(-0.5), "sqrt-of-negative")


def backward(name: str, argument, *before):
    forward = op(len(before), name, argument, out=stats(low=0, high=3, zero=1))
    inner = op(len(before) + 1, "div", value("dividend", 1.0), value("divisor", 0.0, zero=1), out=bad(posinf=1), direction="backward")
    return born(replace(inner, node="SqrtBackward0", forward=forward.index), *before, forward)


def test_a_norm_is_used_only_for_a_norm_by_hand() -> None:
    squares = op(0, "pow", value("base"), out=stats(low=0, high=1), scalars={"exponent": 2})
    total = op(1, "sum", value("input", of=0), out=stats(low=0, high=1, zero=1))
    by_hand = backward("sqrt", value("input", of=1, low=0, high=1, zero=1), squares, total)
    assert "use-vector-norm" in remedies(by_hand, "sqrt-grad-at-zero")
    plain = backward("sqrt", value("input", low=0, high=1, zero=1))
    assert list(remedies(plain, "sqrt-grad-at-zero")) == ["epsilon-inside-root"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("acos", {"clamp-into-domain", "use-atan2"}), ("atanh", {"clamp-into-domain"}), ("lgamma", {"clamp-into-domain"})],
)
def test_an_angle_is_not_every_argument_at_an_edge(name: str, expected: set[str]) -> None:
    edge = 0.0 if name == "lgamma" else 1.0
    assert set(remedies(born(op(0, name, value("input", edge, low=edge, high=edge), out=bad())), "domain-boundary")) == expected


def test_exponentials_stay_in_the_logarithm_where_one_follows() -> None:
    exponential = op(0, "exp", value("input", 200.0, low=0, high=200), out=bad(posinf=1))
    assert "use-logsumexp" not in remedies(born(exponential), "exp-overflow")
    total = op(1, "sum", value("input", of=0), out=bad(posinf=1))
    share = op(2, "div", value("dividend", of=0), value("divisor", of=1), out=bad(nan=1))
    assert "use-logsumexp" in remedies(born(exponential, after=(total, share)), "exp-overflow")


def test_what_multiplies_zero_decides_what_takes_its_place() -> None:
    zero = value("input", 0.0, low=0, high=1, zero=1)
    infinite = value("other", -INF, of=0, stats=bad(neginf=1))
    logarithm = op(0, "log", value("input", 0.0, low=0, high=1, zero=1), out=bad(neginf=1))
    product = op(1, "mul", zero, infinite, out=bad(nan=1))
    assert set(remedies(born(product, logarithm), "zero-times-inf")) == {"select-instead-of-multiply", "use-xlogy"}
    mask = op(0, "masked_fill", value("input"), out=bad(neginf=1), scalars={"value": -INF})
    assert set(remedies(born(product, mask), "zero-times-inf")) == {"select-instead-of-multiply", "finite-mask-value"}


@pytest.mark.parametrize(("constant", "expected"), [(-1e9, {"use-finfo-min", "mask-with-boolean"}), (1e9, {"compute-in-float32"})])
def test_only_a_negative_constant_is_a_mask(constant: float, expected: set[str]) -> None:
    made = bad((), "float16", **({"neginf": 1} if constant < 0 else {"posinf": 1}))
    copy = op(0, "_to_copy", value("input", shape=(), low=constant, high=constant), out=made)
    assert set(remedies(born(copy), "fp16-constant-overflow")) == expected


@pytest.mark.parametrize(("dtype", "epsilon", "shown"), [("float16", 1e-8, True), ("float32", 1e-50, False)])
def test_float32_is_advised_only_below_it(dtype: str, epsilon: float, shown: bool) -> None:
    added = op(0, "add", value("input", low=0, high=1, dtype=dtype, zero=1), out=stats(dtype=dtype, low=0, high=1, zero=1))
    added = replace(added, scalars={"other": epsilon}, absorbed=4)
    case = born(op(1, "log", value("input", 0.0, of=0, dtype=dtype, low=0, high=1, zero=1), out=bad(dtype=dtype, neginf=1)), added)
    assert ("compute-in-float32" in remedies(case, "eps-underflow")) == shown


@pytest.mark.parametrize(("dtype", "shown"), [("float32", True), ("float64", False)])
def test_float64_is_advised_only_below_it(dtype: str, shown: bool) -> None:
    inverse = op(0, "linalg_inv", value("input", shape=(3, 3), dtype=dtype, low=0, high=1), out=bad((3, 3), dtype, posinf=1))
    assert ("use-float64" in remedies(born(inverse), "singular-matrix")) == shown


def test_weights_that_are_infinite_and_weights_that_sum_to_zero() -> None:
    def loss(weight) -> Case:
        outputs = (bad((), nan=1), stats((), low=0.0, high=0.0))
        return born(op(0, "nll_loss", value("log_probabilities"), value("target"), weight, out=outputs))

    assert list(remedies(loss(value("weight", stats=bad(posinf=1))), "bad-class-weight")) == ["clamp-class-counts"]
    assert list(remedies(loss(value("weight", low=0, high=1, zero=2)), "bad-class-weight")) == ["floor-weight-sum"]


def scaled(*factor, **scalars) -> Case:
    """A gradient that overflowed behind a loss that was multiplied by something."""
    loss = op(0, "mean", value("input", **WEIGHT), out=stats((), low=1, high=1))
    product = op(1, "mul", value("input", of=0, shape=(), low=1, high=1), *factor, out=stats((), low=1, high=1), scalars=scalars)
    product = replace(product, site=site(11, "loss * 2.0**16", "operator.mul"))
    one = op(2, "ones_like", value("input", of=1, shape=()), out=stats((), low=1, high=1))
    cast = op(3, "_to_copy", value("input", 7e4, low=0, high=7e4), out=bad((4,), "float16", posinf=1), direction="backward")
    return born(replace(cast, node="ToCopyBackward0", forward=0), loss, product, one)


def test_a_loss_scaled_by_hand_is_the_line_of_the_mistake() -> None:
    birth, session = scaled(other=65536.0)
    first = explain(birth, session, catalogue())[0]
    assert (first.cause, first.site and first.site.line) == ("fp16-grad-overflow", 11)
    assert "use-grad-scaler" in remedies((birth, session), "fp16-grad-overflow")
    plain = explain(*scaled(other=2.0), catalogue())[0]
    assert plain.site is not None
    assert plain.site.line == 7


def test_a_scaler_is_not_advised_to_who_has_one() -> None:
    scale = value("other", shape=(), low=65536, high=65536, source="state")
    assert "use-grad-scaler" not in remedies(scaled(scale), "fp16-grad-overflow")


def test_a_condition_that_fails_costs_its_advice_and_is_told() -> None:
    def fails(birth: Birth, session: Session) -> bool:
        raise ValueError("a fault")

    advice = (Advice("one", "Do one.", when=fails), Advice("two", "Do two."))
    entry = Entry(Cause("a", "a title", "operation", "Why.", "Doubt.", advice), "f", "", lambda b, s: Verdict(0.9, "it", ("fact",)), "", "")
    birth, session = born(op(0, "log"))
    diagnoses = explain(birth, session, (entry,))
    assert [remedy.name for remedy in prescribe(birth, diagnoses, (entry,))] == ["two"]
    assert session.faults == ["the remedy one could not be judged: ValueError: a fault"]
