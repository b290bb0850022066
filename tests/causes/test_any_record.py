"""No probe may raise, and no sentence may show a number that is none, whatever stands in the record."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whynan.causes import catalogue
from whynan.core.explain import explain
from whynan.core.prescribe import prescribe
from whynan.core.records import Operand, Operation, OptimizerState, Site, TensorStats, Trend
from whynan.core.session import Birth, Session

OPS = (
    "log log2 log1p xlogy exp exp2 expm1 sinh div reciprocal rsqrt sqrt pow addcdiv addmm mm mul add sub rsub clamp clamp_min where "
    "masked_fill index softmax log_softmax logsumexp std var mean sum nll_loss mse_loss ctc_loss floor_divide remainder fmod float_power special_xlog1py acos atanh lgamma atan2 linalg_svd "
    "linalg_slogdet linalg_det batch_norm _to_copy full empty neg softplus amax nan_to_num adam hypot binary_cross_entropy unknown_kernel"
).split()
NODES = (
    "SqrtBackward0",
    "PowBackward0",
    "LinalgSvdBackward0",
    "LogsumexpBackward0",
    "torch::autograd::CppFunction",
    "",
    "MseLossBackward0",
)
ROLES = (
    "input other dividend divisor base exponent logits target weight pos_weight log_probabilities mask running_mean mat1 mat2 value"
).split()
NASTY = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-45,
    1e-8,
    1 - 1e-8,
    65504.0,
    7e4,
    3.4028234663852886e38,
    1e30,
    -1e10,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
)
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "bool", "complex64", "float8_e4m3fn", "")

numbers = st.sampled_from(NASTY) | st.floats()
finite = st.none() | numbers.filter(math.isfinite)
counts = st.integers(0, 9)
shapes = st.sampled_from([(), (0,), (1,), (4,), (8, 3), (3, 0), (2, 3, 4)])
sites = st.none() | st.builds(
    Site,
    file=st.just("train.py"),
    line=st.integers(1, 99),
    function=st.just("step"),
    source=st.sampled_from(["loss = torch.log(p).mean()", "", "x = a / (b + c)", "é = torch.log(é)", "y = f("]),
    column=st.none(),
    expression=st.none()
    | st.sampled_from(["torch.log(p)", "a / (b + c)", "torch.log(é)", "f(", "x ** -0.5", "torch.log(torch.softmax(x, 1))"]),
    call=st.none() | st.sampled_from(["torch.log", "operator.truediv", "operator.floordiv", "f"]),
)
statistics = st.builds(
    TensorStats, shapes, st.sampled_from(DTYPES), finite, finite, finite, finite, counts, counts, counts, st.none() | counts
)
operands = st.builds(
    Operand,
    role=st.sampled_from(ROLES),
    stats=statistics,
    producer=st.none() | st.integers(-2, 9),
    source=st.sampled_from(["operation", "input", "parameter", "buffer", "constant", "gradient", "state", "unknown"]),
    name=st.none() | st.just("layer.weight"),
    from_batch=st.booleans(),
    at_birth=st.lists(numbers, max_size=3).map(tuple),
    constant=st.none() | numbers,
)
scalars = st.dictionaries(
    st.sampled_from(["other", "exponent", "min", "max", "value", "alpha", "correction", "ignore_index", "self", "input_lengths", "dim"]),
    numbers | st.integers(-3, 3) | st.booleans() | st.lists(st.integers(0, 9), max_size=3) | st.text(max_size=3),
    max_size=4,
)
directions = st.sampled_from(["forward", "backward", "optimizer"])


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    return Operation(
        index=draw(st.integers(0, 9)),
        op=draw(st.sampled_from(OPS)),
        kernel="aten.some.default",
        direction=draw(directions),
        site=draw(sites),
        node=draw(st.none() | st.sampled_from(NODES)),
        forward=draw(st.none() | st.integers(-1, 9)),
        inputs=tuple(draw(st.lists(operands, max_size=3))),
        outputs=tuple(draw(st.lists(statistics, max_size=2))),
        scalars=draw(scalars),
        rows=draw(st.none() | st.lists(counts, max_size=3).map(tuple)),
        absorbed=draw(counts),
        degrees=draw(st.none() | st.floats(-1, 9)),
        float64_finite=draw(st.none() | st.booleans()),
    )


courses = st.lists(st.none() | numbers, max_size=30)
groups = st.dictionaries(st.sampled_from(["lr", "eps", "betas", "name"]), numbers | st.just((0.9, 0.999)) | st.just("a"), max_size=4)
optimizers = st.builds(
    OptimizerState,
    st.sampled_from(["Adam", "SGD", "Mine"]),
    st.lists(groups, max_size=2).map(tuple),
    sites,
    st.just(("float16",)),
)


@st.composite
def records(draw: st.DrawFn) -> tuple[Birth, Session]:
    recorded = draw(st.lists(operations(), min_size=1, max_size=8))
    recorded = [Operation(**{name: getattr(op, name) for name in Operation.__slots__} | {"index": i}) for i, op in enumerate(recorded)]
    born = draw(st.sampled_from(recorded))
    birth = Birth(
        operation=born,
        op=draw(st.sampled_from([born.op, "input", "param", "buffer"])),
        kind="nan",
        direction=draw(directions),
        phase=draw(st.sampled_from(["input", "forward", "loss", "backward", "optimizer"])),
        site=born.site,
        samples=draw(st.none() | st.lists(counts, max_size=3).map(tuple)),
        dataset_indices=draw(st.none() | st.just((1, 2))),
        chain=tuple(draw(st.lists(st.integers(-1, 12), max_size=4))),
        from_infinity=draw(st.booleans()),
        origin_name=draw(st.none() | st.just("layer.weight")),
    )
    trend = Trend(list(range(30)), draw(courses), draw(courses), draw(courses), draw(courses))
    what = draw(st.sampled_from(["loss", "gradient", "parameter", "buffer", "exception"]))
    made = tuple(draw(st.lists(optimizers, max_size=2)))
    scale = draw(st.none() | numbers)
    return birth, Session(draw(st.integers(0, 50)), what, operations=recorded, optimizers=made, trend=trend, scale=scale)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(records())
def test_every_probe_answers_or_is_silent(record: tuple[Birth, Session]) -> None:
    birth, session = record
    for entry in catalogue():
        verdict = entry.probe(birth, session)
        if verdict is not None:
            assert 0 < verdict.confidence <= 1
            assert verdict.summary
            assert not verdict.summary.endswith(".")
            assert all(isinstance(fact, str) and fact for fact in verdict.evidence)
    diagnoses = explain(birth, session, catalogue())
    assert len({diagnosis.cause for diagnosis in diagnoses}) == len(diagnoses)
    assert all(remedy.status == "not-tried" and remedy.change for remedy in prescribe(birth, diagnoses, catalogue()))
