"""From what went bad back to the birth, on records written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.steps import Step, assert_leads
from whynan.core.records import Operand, TensorStats


def test_a_division_by_zero_that_becomes_the_loss() -> None:
    step = Step()
    x = step.outside()
    scaled = step.op("mul", x)
    ratio = step.op("div", scaled, x, nan=1, rows=(2,), nan_rows=(2,), line=9)
    loss = step.op("mean", ratio, shape=(), nan=1)
    birth = step.found(loss)
    assert (birth.op, birth.kind, birth.direction, birth.phase) == ("div", "nan", "forward", "loss")
    assert birth.site is not None
    assert birth.site.line == 9
    assert birth.samples == (2,)
    assert not birth.from_infinity
    assert birth.chain == (1, 2)


def test_an_infinity_is_a_birth_of_its_own_kind() -> None:
    step = Step()
    loss = step.op("sum", step.op("exp", step.outside(), posinf=2, module="net.head", rows=(0, 1)), shape=(), posinf=1)
    birth = step.found(loss)
    assert (birth.op, birth.kind, birth.phase, birth.samples) == ("exp", "inf", "forward", (0, 1))


def test_the_birth_is_where_it_began_not_the_first_non_finite_value() -> None:
    """An infinity beside the way, and one that a later operation makes finite again, are not to blame."""
    step = Step()
    x = step.outside()
    step.op("log", x, neginf=1)
    best = step.op("full", posinf=1, shape=(), scalars={"fill_value": float("inf")})
    step.op("minimum", best, x)
    swallowed = step.op("exp", step.op("log", x, neginf=1))
    born = step.op("sqrt", swallowed, nan=1)
    loss = step.op("mean", born, shape=(), nan=1)
    assert step.found(loss).op == "sqrt"


def test_of_two_births_the_first_is_told() -> None:
    step = Step()
    early, late = step.op("log", step.outside(), nan=1), step.op("sqrt", step.outside(), nan=1)
    loss = step.op("add", late, early, nan=1)
    assert step.found(loss).op == "log"
    assert step.found(late).op == "sqrt"


def test_nan_explains_nan_before_infinity_does() -> None:
    step = Step()
    infinite = step.op("exp", step.outside(), posinf=1)
    born = step.op("sqrt", step.outside(), nan=1)
    assert step.found(step.op("add", infinite, born, nan=1, posinf=1)).op == "sqrt"


def test_infinity_is_explained_by_infinity() -> None:
    step = Step()
    nan = step.op("sqrt", step.outside(), nan=1)
    infinite = step.op("exp", step.outside(), posinf=1)
    assert step.found(step.op("fmax", nan, infinite, posinf=1)).op == "exp"


def test_it_is_found_whichever_way_leads_to_it() -> None:
    """A diamond: both arms are bad, and the chain is one of them."""
    step = Step()
    born = step.op("log", step.outside(), nan=1)
    arms = step.op("neg", born, nan=1), step.op("abs", born, nan=1)
    loss = step.op("add", *arms, nan=1)
    birth = step.found(loss)
    assert birth.op == "log"
    assert_leads(birth, step.operations, loss)


# ---- masks ----


@pytest.mark.parametrize("consumer", ["softmax", "log_softmax", "logsumexp", "scaled_dot_product_attention"])
@pytest.mark.parametrize("writes", ["full", "masked_fill", "where", "index_put"])
def test_a_mask_is_passed_over_for_the_softmax_that_has_nothing_left(consumer: str, writes: str) -> None:
    step = Step()
    mask = step.op(writes, step.outside(), neginf=9, rows=(0, 1, 2, 3), scalars={"value": float("-inf")})
    scores = step.op("add", step.outside(), mask, neginf=9, rows=(0, 1, 2, 3))
    weights = step.op(consumer, scores, nan=3, rows=(1,), nan_rows=(1,))
    loss = step.op("mean", weights, shape=(), nan=1)
    birth = step.found(loss)
    assert (birth.op, birth.kind, birth.from_infinity) == (consumer, "nan", True)
    assert birth.samples == (1,)


@pytest.mark.parametrize("source", ["constant", "buffer"])
def test_a_mask_made_before_the_step_is_passed_over_too(source: str) -> None:
    step = Step()
    mask = step.outside(source, neginf=5)  # type: ignore[arg-type]
    weights = step.op("softmax", step.op("add", step.outside(), mask, neginf=5), nan=3, nan_rows=(0,), rows=(0,))
    assert step.found(weights).op == "softmax"


def test_a_mask_of_the_batch_is_passed_over_by_a_softmax() -> None:
    step = Step()
    mask = step.outside("input", neginf=5, rows=(0, 1))
    assert step.found(step.op("softmax", mask, nan=3, nan_rows=(0,), rows=(0,))).op == "softmax"


def test_a_written_infinity_that_itself_becomes_the_loss_is_told() -> None:
    step = Step()
    loss = step.op("sum", step.op("full", posinf=3, scalars={"fill_value": float("inf")}), shape=(), posinf=1)
    assert step.found(loss).op == "full"


def test_a_computed_infinity_that_other_rows_survive_is_excused() -> None:
    """log(0) = -inf stands for a mask: rows that hold it come out finite, only the row that holds nothing else is NaN."""
    step = Step()
    logs = step.op("log", step.outside(), neginf=4, rows=(0, 1, 2))
    weights = step.op("softmax", logs, nan=3, rows=(1,), nan_rows=(1,))
    birth = step.found(weights)
    assert (birth.op, birth.from_infinity, birth.samples) == ("softmax", True, (1,))


def test_a_computed_infinity_that_no_row_survives_is_to_blame() -> None:
    step = Step()
    logs = step.op("log", step.outside(), neginf=4, rows=(1,))
    weights = step.op("softmax", logs, nan=3, rows=(1,), nan_rows=(1,))
    assert step.found(weights).op == "log"


def test_a_positive_infinity_is_no_mask() -> None:
    step = Step()
    logits = step.op("exp", step.outside(), posinf=1, rows=(0, 1))
    assert step.found(step.op("softmax", logits, nan=3, rows=(1,), nan_rows=(1,))).op == "exp"


# ---- NaN made of infinities ----


def test_an_overflow_is_to_blame_for_the_nan_that_came_of_it() -> None:
    step = Step()
    big = step.op("mul", step.outside(), posinf=1, rows=(3,))
    loss = step.op("sum", step.op("sub", big, big, nan=1, rows=(3,), nan_rows=(3,)), shape=(), nan=1)
    birth = step.found(loss)
    assert (birth.op, birth.kind, birth.samples, birth.chain) == ("mul", "inf", (3,), (0, 1, 2))


def test_an_infinite_input_is_to_blame_for_the_nan_that_came_of_it() -> None:
    step = Step()
    x = step.outside("input", posinf=1, rows=(2,))
    birth = step.found(step.op("sub", x, x, nan=1))
    assert (birth.op, birth.kind, birth.phase, birth.samples) == ("input", "inf", "input", (2,))


def test_an_intended_infinity_beside_a_computed_one_leaves_the_blame_with_the_computed() -> None:
    step = Step()
    mask = step.op("full", neginf=3, scalars={"fill_value": float("-inf")})
    overflow = step.op("exp", step.outside(), posinf=1)
    assert step.found(step.op("add", mask, overflow, nan=1)).op == "exp"


def test_zero_times_a_written_infinity_is_born_in_the_product() -> None:
    step = Step()
    mask = step.op("full", neginf=3, scalars={"fill_value": float("-inf")})
    birth = step.found(step.op("mul", step.outside(), mask, nan=1))
    assert (birth.op, birth.from_infinity) == ("mul", True)


# ---- values that were there before ----


def test_a_bad_input_is_placed_at_the_first_operation_that_lets_it_through() -> None:
    step = Step()
    x = step.outside("input", nan=2, rows=(1, 3), name="x")
    step.op("isnan", x, line=3)
    step.op("nan_to_num", x, line=4)
    through = step.op("mul", x, nan=2, line=5)
    birth = step.found(step.op("mean", through, shape=(), nan=1, line=6), dataset_indices=(40, 41, 42, 43))
    assert (birth.op, birth.kind, birth.direction, birth.phase) == ("input", "nan", "forward", "input")
    assert birth.site is not None
    assert birth.site.line == 5
    assert birth.samples == (1, 3)
    assert birth.dataset_indices == (41, 43)
    assert birth.origin_name == "x"


def test_the_first_reader_counts_even_where_another_leads_to_the_loss() -> None:
    """`x` is read by two operations; the birth is where it came in first, not where the walk back happened to pass."""
    step = Step()
    x = step.outside("input", nan=1, rows=(0,))
    step.op("linear", x, nan=1, line=3)
    assert step.found(step.op("mul", x, nan=1, line=8)).operation.site == step.operations[0].site


def test_a_bad_parameter_is_named_with_all_the_others_that_are() -> None:
    step = Step()
    weight, bias = (step.outside("parameter", nan=1, shape=(3,), name=name) for name in ("head.weight", "head.bias"))
    healthy = step.outside("parameter", shape=(3,), name="body.weight")
    hidden = step.op("mul", step.outside(), healthy)
    birth = step.found(step.op("add", step.op("mul", hidden, weight, nan=1), bias, nan=1))
    assert (birth.op, birth.phase, birth.direction) == ("param", "forward", "forward")
    assert birth.parameters == ("head.bias", "head.weight")
    assert birth.samples is None


def test_a_bad_buffer_is_named() -> None:
    step = Step()
    mean = step.outside("buffer", nan=3, shape=(3,), name="norm.running_mean")
    birth = step.found(step.op("batch_norm", step.outside(), mean, nan=12))
    assert (birth.op, birth.origin_name) == ("buffer", "norm.running_mean")


def test_a_bad_optimizer_state_is_born_where_the_optimizer_reads_it() -> None:
    step = Step()
    state = step.outside("state", nan=1, shape=(3,))
    bad = step.op("addcdiv", step.outside("parameter", shape=(3,)), state, nan=1, shape=(3,), direction="optimizer")
    birth = step.found(bad, what="parameter", parameters=("w",))
    assert (birth.op, birth.direction, birth.phase, birth.parameters) == ("addcdiv", "optimizer", "optimizer", ("w",))


# ---- gradients and the optimizer ----


def test_a_birth_in_the_backward_pass() -> None:
    step = Step()
    root = step.op("sqrt", step.outside("parameter"), line=4)
    step.op("sum", root, shape=())
    gradient = step.op("div", step.outside("gradient"), root, posinf=1, direction="backward", node="SqrtBackward0", line=4)
    birth = step.found(gradient, what="gradient", parameters=("w",))
    assert (birth.op, birth.kind, birth.direction, birth.phase) == ("div", "inf", "backward", "backward")
    assert birth.parameters == ("w",)
    assert birth.operation.node == "SqrtBackward0"


def test_the_branch_that_where_threw_away_is_found_through_its_gradient() -> None:
    """exp overflows, `where` takes the other branch, and the backward of exp multiplies a gradient of 0 by the infinity."""
    step = Step()
    overflow = step.op("exp", step.outside(), posinf=1, rows=(2,))
    chosen = step.op("where", step.outside(), overflow, step.outside())
    step.op("mean", chosen, shape=())
    zero = step.op("where", step.outside("gradient"), direction="backward", node="WhereBackward0")
    gradient = step.op("mul", zero, overflow, nan=1, direction="backward", node="ExpBackward0")
    birth = step.found(gradient, what="gradient", parameters=("w",))
    assert (birth.op, birth.kind, birth.direction, birth.phase) == ("exp", "inf", "forward", "backward")
    assert birth.samples == (2,)


def test_a_birth_in_the_optimizer() -> None:
    step = Step()
    gradient = step.op("mul", step.outside("gradient"), direction="backward")
    root = step.op("sqrt", gradient, direction="optimizer")
    weight = step.op("addcdiv", step.outside("parameter"), gradient, root, posinf=1, direction="optimizer")
    birth = step.found(weight, what="parameter", parameters=("w", "b"))
    assert (birth.op, birth.direction, birth.phase, birth.parameters) == ("addcdiv", "optimizer", "optimizer", ("w", "b"))


# ---- exceptions, rows, and records that do not tell ----


def test_an_exception_leads_back_through_what_the_failed_operation_read() -> None:
    step = Step()
    matrix = step.op("div", step.outside(), nan=2)
    birth = step.found(step.raises("linalg_svd", step.op("mul", matrix, nan=2)), what="exception")
    assert birth.op == "div"


def test_an_exception_after_infinities_leads_back_too() -> None:
    step = Step()
    infinite = step.op("exp", step.outside(), posinf=2)
    assert step.found(step.raises("linalg_svd", infinite), what="exception").op == "exp"


def test_an_exception_over_finite_values_has_no_birth() -> None:
    step = Step()
    assert step.birth(step.raises("mm", step.outside()), what="exception") is None


@pytest.mark.parametrize("operation", [None, -1, 1, 99])
def test_a_seed_outside_the_record_has_no_birth(operation: int | None) -> None:
    step = Step()
    bad = step.op("log", step.outside(), nan=1)
    assert bad.producer == 0
    seed = type(bad)("input", bad.stats, producer=operation)
    assert step.birth(seed) is None


def test_an_empty_record_has_no_birth() -> None:
    assert Step().birth() is None


def test_samples_are_the_rows_that_go_on_being_bad() -> None:
    step = Step()
    logs = step.op("log", step.outside(), neginf=3, rows=(0, 1, 2))
    kept = step.op("mul", logs, neginf=1, rows=(1,))
    assert step.found(step.op("sum", kept, shape=(), neginf=1)).samples == (1,)


def test_rows_that_go_on_elsewhere_are_not_lost() -> None:
    """The next operation of the same shape has other bad rows (a flip): those of the birth are told."""
    step = Step()
    flipped = step.op("flip", step.op("log", step.outside(), neginf=1, rows=(0,)), neginf=1, rows=(3,))
    assert step.found(flipped).samples == (0,)


def test_rows_of_something_that_is_no_batch_are_not_told() -> None:
    step = Step()
    assert step.found(step.op("log", step.outside("parameter"), nan=1, rows=(0,), batch_rows=False)).samples is None


def test_indices_are_told_only_where_every_row_has_one() -> None:
    step = Step()
    bad = step.op("log", step.outside(), nan=1, rows=(0, 3))
    assert step.found(bad, dataset_indices=(7, 5, 3, 1)).dataset_indices == (7, 1)
    assert step.found(bad, dataset_indices=(7, 5)).dataset_indices is None
    assert step.found(bad).dataset_indices is None


# ---- what is done to data on their way into the model ----


def layer(step: Step, x: Operand, **rest: Any) -> Operand:
    return step.op("addmm", x, step.outside("parameter", shape=(3, 3)), **rest)


def test_data_prepared_for_the_model_are_input() -> None:
    step = Step()
    feature = step.op("log", step.outside(), nan=1, rows=(2,))
    loss = step.op("mean", layer(step, step.op("mul", feature, nan=1), nan=1, module="net.0"), nan=1, shape=())
    assert (step.found(loss).op, step.found(loss).phase, step.found(loss).direction) == ("log", "input", "forward")
    assert step.found(loss, what="gradient").phase == "input"


def test_a_label_that_meets_the_prediction_only_in_the_loss_is_not() -> None:
    step = Step()
    output = layer(step, step.outside(), module="net.0")
    label = step.op("log", step.outside(), nan=1)
    loss = step.op("mse_loss", output, label, nan=1, shape=(), module="criterion")
    assert step.found(loss).phase == "loss"


def test_what_a_module_of_the_model_adds_is_input_and_what_a_loss_reads_is_not() -> None:
    for module, phase in (("net.attention", "input"), ("", "input"), ("net", "input"), ("network", "loss"), (None, "loss")):
        step = Step()
        scores = layer(step, step.outside(), module="net.attention.query")
        bias = step.op("log", step.outside(), neginf=1)
        loss = step.op("add", scores, bias, nan=1, module=module)
        assert step.found(loss).phase == phase


def test_a_weight_that_was_cast_is_still_a_weight() -> None:
    step = Step()
    weight = step.op("_to_copy", step.outside("parameter", shape=(3, 3)), shape=(3, 3))
    loss = step.op("mm", step.op("div", step.outside(), nan=1), weight, nan=1)
    assert step.found(loss).phase == "input"


def test_a_parameter_below_makes_it_no_preparation() -> None:
    step = Step()
    born = step.op("log", layer(step, step.outside()), nan=1)
    assert step.found(layer(step, born, nan=1)).phase == "loss"


def test_a_nameless_tensor_that_asks_for_a_gradient_is_a_parameter() -> None:
    step = Step()
    leaf = Operand("input", TensorStats((4, 3), "float32", 0.0, 1.0), source="input")
    loss = step.op("mul", step.op("log", leaf, nan=1), layer(step, step.outside()), nan=1)
    assert step.found(loss).phase == "loss"


def test_before_the_model_has_run_an_exception_ends_a_preparation() -> None:
    step = Step()
    raised = step.raises("linalg_svd", step.op("div", step.outside(), nan=1))
    assert step.found(raised, what="exception").phase == "input"
    step = Step()
    layer(step, step.outside())
    raised = step.raises("linalg_svd", step.op("div", step.outside(), nan=1))
    assert step.found(raised, what="exception").phase == "loss"
