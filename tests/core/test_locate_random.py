"""Whatever the graph: what was planted at operation k is located at k, and what is benign is never blamed."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.steps import Step, assert_leads
from whynan.core.records import Operand

LETS_THROUGH = ("mul", "add", "mm", "tanh", "view", "cat", "index", "layer_norm")
MAKES_FINITE = ("nan_to_num", "isnan", "argmax", "where", "minimum")
OUTSIDE = ("input", "parameter", "buffer", "constant", "gradient", "state")
BAD: tuple[dict[str, int], ...] = ({"nan": 2}, {"posinf": 1}, {"neginf": 1}, {"posinf": 1, "neginf": 2}, {"nan": 1, "posinf": 1})
random_graphs = settings(max_examples=150, deadline=None)


@dataclass
class Graph:
    """`readable` is what later operations may read; `planted` made something bad of finite operands."""

    step: Step = field(default_factory=Step)
    readable: list[Operand] = field(default_factory=list)
    planted: list[int] = field(default_factory=list)

    def gone_bad(self) -> list[Operand]:
        return [operand for operand in self.readable if not operand.stats.finite]


@st.composite
def graphs(draw: st.DrawFn, plants: int = 1, benign: bool = False) -> Graph:
    graph = Graph()
    length = draw(st.integers(plants, 25))
    at = draw(st.sets(st.integers(0, length - 1), min_size=plants, max_size=plants))
    for position in range(length):
        if benign and draw(st.booleans()):
            _add_benign(draw, graph)
        operands = [_operand(draw, graph) for _ in range(draw(st.integers(1, 3)))]
        if position in at and all(o.stats.finite for o in operands):
            graph.planted.append(len(graph.step.operations))
            graph.readable.append(graph.step.op("planted", *operands, **draw(st.sampled_from(BAD))))
        else:
            graph.readable.append(_passed_on(draw, graph, operands))
    if not graph.planted:
        graph.planted.append(len(graph.step.operations))
        graph.readable.append(graph.step.op("planted", graph.step.outside(), **draw(st.sampled_from(BAD))))
    return graph


def _operand(draw: st.DrawFn, graph: Graph) -> Operand:
    if graph.readable and draw(st.integers(0, 4)):
        return draw(st.sampled_from(graph.readable))
    return graph.step.outside(draw(st.sampled_from(OUTSIDE)))


def _passed_on(draw: st.DrawFn, graph: Graph, operands: list[Operand]) -> Operand:
    """NaN stays NaN, infinities become infinities or NaN, and some operations make it all finite."""
    bad = [o for o in operands if not o.stats.finite]
    if not bad or draw(st.integers(0, 9)) == 9:
        return graph.step.op(draw(st.sampled_from(MAKES_FINITE)), *operands)
    nan = any(o.stats.nan for o in bad) or draw(st.booleans())
    return graph.step.op(draw(st.sampled_from(LETS_THROUGH)), *operands, **({"nan": 1} if nan else {"posinf": 1}))


def _add_benign(draw: st.DrawFn, graph: Graph) -> None:
    """An infinity that nothing reads, or whose reader comes out finite: later operations may read only the reader's result."""
    step, rows = graph.step, {"rows": (0, 1), "neginf": 2}
    kind = draw(st.integers(0, 4))
    if kind == 0:
        step.op("exp", step.outside(), posinf=1)
    elif kind == 1:
        mask = step.op("masked_fill", _finite(draw, graph), scalars={"value": float("-inf")}, **rows)
        graph.readable.append(step.op("softmax", mask))
    elif kind == 2:
        graph.readable.append(step.op("softmax", step.op("log", _finite(draw, graph), **rows)))
    elif kind == 3:
        graph.readable.append(step.op("isfinite", step.outside("input", nan=1)))
    else:
        best = step.op("full", posinf=1, scalars={"fill_value": float("inf")})
        graph.readable.append(step.op("minimum", best, _finite(draw, graph)))


def _finite(draw: st.DrawFn, graph: Graph) -> Operand:
    known = [operand for operand in graph.readable if operand.stats.finite]
    return draw(st.sampled_from(known)) if known else graph.step.outside()


def assert_finds_planted_birth(graph: Graph, gone_bad: Operand) -> None:
    birth = graph.step.found(gone_bad)
    assert birth.operation.index in graph.planted
    assert birth.op == "planted"
    assert_leads(birth, graph.step.operations, gone_bad)


@random_graphs
@given(graphs())
def test_what_is_planted_at_an_operation_is_located_there(graph: Graph) -> None:
    for gone_bad in graph.gone_bad():
        assert_finds_planted_birth(graph, gone_bad)


@random_graphs
@given(graphs(benign=True))
def test_what_is_benign_is_never_blamed(graph: Graph) -> None:
    for gone_bad in graph.gone_bad():
        assert_finds_planted_birth(graph, gone_bad)


@random_graphs
@given(graphs(plants=3, benign=True))
def test_of_several_one_that_leads_to_what_went_bad_is_told(graph: Graph) -> None:
    for gone_bad in graph.gone_bad():
        assert_finds_planted_birth(graph, gone_bad)


@random_graphs
@given(graphs(plants=2), st.data())
def test_several_seeds_are_followed_to_the_earliest_birth(graph: Graph, data: st.DataObject) -> None:
    seeds = data.draw(st.lists(st.sampled_from(graph.gone_bad()), min_size=1, unique=True))
    each = [graph.step.found(seed) for seed in seeds]
    assert graph.step.found(*seeds).operation.index == min(birth.operation.index for birth in each)


@random_graphs
@given(graphs(plants=2, benign=True), st.sampled_from(("loss", "gradient", "parameter")))
def test_locating_changes_nothing_and_gives_the_same_again(graph: Graph, what: str) -> None:
    before = list(graph.step.operations)
    seed = graph.gone_bad()[-1]
    assert graph.step.found(seed, what=what) == graph.step.found(seed, what=what)  # type: ignore[arg-type]
    assert graph.step.operations == before
