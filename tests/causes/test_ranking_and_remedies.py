"""Ranking of verdicts, and remedies shown on the user's own line."""

from __future__ import annotations

import pytest

from tests.causes.builders import born, op, site
from whynan.core.catalogue import Advice, Cause, Edit, Entry, Level, Verdict
from whynan.core.explain import explain
from whynan.core.incident import Diagnosis
from whynan.core.prescribe import prescribe
from whynan.core.rewriting import rewritten
from whynan.core.session import Birth, Session

SOFTMAX = Edit("whole", ".log_softmax({})", ("log",), ("softmax",))
CASE = born(op(0, "log"))


def entry(name: str, confidence: float | None, level: Level = "operation", *remedies: Advice, **words: str) -> Entry:
    def probe(birth: Birth, session: Session) -> Verdict | None:
        return None if confidence is None else Verdict(confidence, f"{name} happened", ("a fact",), **words)

    cause = Cause(name, "a title", level, "The mechanism.", "The doubt.", remedies, "" if remedies else "There is none.")
    return Entry(cause, "family", "", probe, "", "")


def names(*entries: Entry) -> list[str]:
    return [diagnosis.cause for diagnosis in explain(*CASE, entries)]


def test_verdicts_are_ranked_by_confidence_and_not_by_order() -> None:
    assert names(entry("a", 0.3), entry("b", 0.9), entry("c", None), entry("d", 0.5)) == ["b", "d", "a"]


def test_run_level_cause_stands_before_the_mechanism() -> None:
    assert names(entry("mechanism", 0.95), entry("rate", 0.7, "run")) == ["rate", "mechanism"]


def test_run_level_cause_with_little_support_does_not() -> None:
    assert names(entry("mechanism", 0.95), entry("rate", 0.5, "run")) == ["mechanism", "rate"]


def test_equal_confidence_is_ordered_by_name() -> None:
    assert names(entry("b", 0.9), entry("a", 0.9)) == ["a", "b"]


def test_guesses_are_left_out_and_the_list_is_short() -> None:
    assert names(entry("guess", 0.1)) == []
    assert len(names(*(entry(f"cause-{i}", 0.5) for i in range(20)))) == 6


def test_diagnosis_has_the_cause_s_sentences_and_the_birth_s_line_unless_told_otherwise() -> None:
    (plain,) = explain(*CASE, (entry("a", 0.9),))
    assert (plain.why, plain.doubt, plain.site) == ("The mechanism.", "The doubt.", CASE[0].site)
    (own,) = explain(*CASE, (entry("a", 0.9, "operation", why="Another.", doubt="Other.", site=site(3)),))
    assert (own.why, own.doubt, own.site) == ("Another.", "Other.", site(3))


@pytest.mark.parametrize(
    ("expression", "edit", "expected"),
    [
        ("torch.log(p)", Edit("argument", "{}.clamp_min(1e-6)", ("log",)), "torch.log(p.clamp_min(1e-6))"),
        ("torch.log(a - b)", Edit("argument", "{}.clamp_min(1e-6)", ("log",)), "torch.log((a - b).clamp_min(1e-6))"),
        ("(a - b).log()", Edit("argument", "{}.clamp_min(1e-6)", ("log",)), "((a - b).clamp_min(1e-6)).log()"),
        ("p.log()", Edit("argument", "{}.clamp_min(1e-6)", ("log",)), "p.clamp_min(1e-6).log()"),
        ("torch.exp(p)", Edit("argument", "{}.clamp_min(1e-6)", ("log",)), None),
        ("a / b", Edit("divisor", "{}.clamp_min(1)"), "a / b.clamp_min(1)"),
        ("a / (b + c)", Edit("divisor", "{}.clamp_min(1)"), "a / ((b + c).clamp_min(1))"),
        ("torch.div(a, b)", Edit("divisor", "{}.clamp_min(1)", ("div",)), "torch.div(a, b.clamp_min(1))"),
        ("a.div(b)", Edit("divisor", "{}.clamp_min(1)", ("div",)), "a.div(b.clamp_min(1))"),
        ("a * b", Edit("divisor", "{}.clamp_min(1)"), None),
        ("x ** -0.5", Edit("base", "{}.clamp_min(1e-6)"), "x.clamp_min(1e-6) ** -0.5"),
        ("x.pow(-0.5)", Edit("base", "{}.clamp_min(1e-6)", ("pow",)), "x.clamp_min(1e-6).pow(-0.5)"),
        ("SGD(p, lr=0.3)", Edit("keyword", "{} / 10", keyword="lr"), "SGD(p, lr=0.3 / 10)"),
        ("SGD(p, 0.3)", Edit("keyword", "{} / 10", keyword="lr"), None),
        ("a + b", Edit("whole", "{}.clamp_min(m)"), "(a + b).clamp_min(m)"),
        ("torch.sqrt(a + b)", Edit("argument", "({} + 1e-8)", ("sqrt",)), "torch.sqrt((a + b) + 1e-8)"),
        ("a.sqrt()", Edit("argument", "({} + 1e-8)", ("sqrt",)), "(a + 1e-8).sqrt()"),
        (
            "torch.log(torch.softmax(x, 1))",
            Edit("whole", "f({})", ("log",), ("softmax",)),
            "f(x, 1)",
        ),
        ("torch.log(torch.softmax(x, 1))", SOFTMAX, "torch.log_softmax(x, 1)"),
        ("torch.log(F.softmax(x, dim=1))", SOFTMAX, "F.log_softmax(x, dim=1)"),
        ("torch.log(F.softmax(x))", SOFTMAX, "F.log_softmax(x)"),
        ("x.softmax(1).log()", SOFTMAX, "x.log_softmax(1)"),
        ("(a + b).softmax(dim=-1).log()", SOFTMAX, "(a + b).log_softmax(dim=-1)"),
        ("th.log(th.softmax(x, 1))", SOFTMAX, "th.log_softmax(x, 1)"),
        ("log(softmax(x, 1))", SOFTMAX, "torch.log_softmax(x, 1)"),
        ("torch.log(self.softmax(x))", SOFTMAX, None),
        ("torch.log(p)", SOFTMAX, None),
        ("np.log(p)", Edit("argument", "{}.abs()", ("log",)), "np.log(p.abs())"),
        ("self.log(p)", Edit("argument", "{}.abs()", ("log",)), "self.log(p.abs())"),
        ("th.div(a, b)", Edit("divisor", "{}.abs()", ("div",)), "th.div(a, b.abs())"),
        ("th.pow(a, exponent=2)", Edit("base", "{}.abs()", ("pow",)), "th.pow(a.abs(), exponent=2)"),
        ("x[0] /= n", Edit("divisor", "max({}, 1)"), "x[0] /= max(n, 1)"),
        ("x[0] *= n", Edit("divisor", "max({}, 1)"), None),
        ("a / (b - c)", Edit("divisor", "max({}, 1)"), "a / (max(b - c, 1))"),
        ("a / 0", Edit("divisor", "{}.clamp_min(1)"), None),
        ("a / 0", Edit("divisor", "max({}, 1)"), None),
        ("torch.log(", Edit("argument", "{}", ("log",)), None),
        ("torch.log(é)", Edit("argument", "{}", ("log",)), None),
        ("torch.log(*args)", Edit("argument", "{}.abs()", ("log",)), None),
        ("torch.log()", Edit("argument", "{}.abs()", ("log",)), None),
    ],
)
def test_expression_is_rewritten_where_it_fits(expression: str, edit: Edit, expected: str | None) -> None:
    assert rewritten(expression, edit) == expected


def told(*diagnoses: Diagnosis, catalogue: tuple[Entry, ...]) -> list[tuple[str, str]]:
    return [(remedy.name, remedy.change) for remedy in prescribe(CASE[0], diagnoses, catalogue)]


def diagnosis(cause: str, place=None) -> Diagnosis:
    return Diagnosis(cause, 0.9, "It happened", ("a fact",), place)


def test_remedy_shows_the_user_s_line_before_and_after() -> None:
    advice = Advice("floor-it", "Give it a floor.", (Edit("argument", "{}.clamp_min(1e-6)", ("log",)),))
    changes = told(diagnosis("a"), catalogue=(entry("a", 0.9, "operation", advice),))
    assert changes == [("floor-it", "- loss = -torch.log(p).mean()\n+ loss = -torch.log(p.clamp_min(1e-6)).mean()")]


def test_remedy_that_does_not_fit_the_line_is_told_in_words_and_comes_last() -> None:
    words = Advice("rethink", "Think again.")
    fits = Advice("floor-it", "Give it a floor.", (Edit("argument", "{}.abs()", ("log",)),))
    assert [name for name, _ in told(diagnosis("a"), catalogue=(entry("a", 0.9, "operation", words, fits),))] == [
        "floor-it",
        "rethink",
    ]
    assert told(diagnosis("a"), catalogue=(entry("a", 0.9, "operation", words),)) == [("rethink", "Think again.")]


def test_expression_that_stands_twice_on_its_line_is_not_rewritten() -> None:
    advice = Advice("floor-it", "Give it a floor.", (Edit("argument", "{}.abs()", ("log",)),))
    place = site(source="y = torch.log(p) + torch.log(p)")
    assert told(diagnosis("a", place), catalogue=(entry("a", 0.9, "operation", advice),)) == [("floor-it", "Give it a floor.")]


def test_remedy_is_named_once_and_only_for_the_first_causes() -> None:
    shared = Advice("floor-it", "Give it a floor.")
    entries = tuple(entry(name, 0.9, "operation", shared, Advice(f"mend-{name}", "Mend it.")) for name in "abcd")
    found = [name for name, _ in told(*(diagnosis(name) for name in "abcd"), catalogue=entries)]
    assert found == ["floor-it", "mend-a", "mend-b", "mend-c"]
