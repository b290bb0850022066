"""The terminal report part by part: each says its thing, in the fixed order, at any width, and nothing from the user acts."""

from __future__ import annotations

import io
import re
import unicodedata
from typing import Any

import pytest

from tests.report.samples import HOSTILE, birth, built, diagnosis, incident, on_terminal, operation, placed_at, site, unplaced
from whynan.core.incident import Remedy, Run
from whynan.core.records import TensorStats
from whynan.report import terminal, words
from whynan.report.document import document
from whynan.report.markdown import render as as_markdown

ORDER = ["what", "where", "evidence", "why", "help", "note", "next"]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def part(text: str, label: str) -> str:
    """The lines of one section, without the label's column."""
    found, inside = [], False
    for line in text.splitlines():
        if line[:1].isalpha():
            inside = line.split()[0] == label
        if inside:
            found.append(line[10:].rstrip())
    return "\n".join(found)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_parts_stand_in_the_fixed_order() -> None:
    labels = [line.split()[0] for line in on_terminal(built(incident())).splitlines() if line[:1].isalpha()]
    assert labels == ORDER


def test_what_is_one_sentence_with_the_causes_name_in_brackets() -> None:
    what = one_line(part(on_terminal(built(incident())), "what"))
    assert what == "The loss became non-finite at step 12: the logarithm of exactly 0 is taken [log-of-zero]."


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"what": "gradient", "names": ("a.weight",)}, "The gradient of a.weight became NaN at step 12."),
        ({"what": "parameter", "names": ("a.weight",)}, "The parameter a.weight became NaN at step 12."),
        ({"what": "gradient", "names": ("a", "b")}, "2 gradients became NaN at step 12."),
        ({"what": "exception", "exception": "LinAlgError: svd"}, "At step 12 a non-finite value raised LinAlgError: svd."),
        ({"what": "exception", "exception": "LinAlgError: svd.\n"}, "At step 12 a non-finite value raised LinAlgError: svd."),
        ({"kind": "loss-scale-collapse"}, "The loss is non-finite at every loss scale at step 12."),
    ],
)
def test_what_says_what_went_bad(changes: dict[str, Any], expected: str) -> None:
    assert one_line(part(on_terminal(built(incident(birth=None, diagnoses=(), **changes))), "what")) == expected


def test_an_exceptions_own_full_stop_does_not_end_the_sentence() -> None:
    found = incident(what="exception", exception="LinAlgError: it contained non-finite values.")
    what = one_line(part(on_terminal(built(found)), "what"))
    assert what.endswith("contained non-finite values: the logarithm of exactly 0 is taken [log-of-zero].")


def test_where_underlines_the_culprit_expression() -> None:
    lines = part(on_terminal(built(incident())), "where").splitlines()
    assert lines[0] == "/home/me/train.py:42 in PairLoss.forward"
    assert lines[1] == "  d = torch.log(p)"
    assert lines[2] == "      ^^^^^^^^^^^^"
    assert lines[3] == "module head.loss, loss computation, step 12, rows 17, 40, 41"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"op": "log", "call": "torch.log"}, "operation: log"),
        ({"op": "div", "call": "operator.truediv"}, "operation: div (/)"),
        ({"op": "rsub", "call": "operator.sub"}, "operation: rsub (-)"),
        ({"op": "addmm", "call": "self.head"}, "operation: addmm (self.head)"),
        ({"op": "div", "call": "torch.sqrt", "node": "SqrtBackward0"}, "operation: div (SqrtBackward0, torch.sqrt)"),
        ({"op": "copy", "call": None}, "operation: copy"),
    ],
)
def test_where_names_the_operation_and_what_was_written_for_it(changes: dict[str, Any], expected: str) -> None:
    one = operation(site(call=changes.pop("call")), **changes)
    assert part(on_terminal(built(incident(one))), "where").splitlines()[-1] == expected
    assert expected.partition(" (")[0] in as_markdown(built(incident(one))).replace("\\", "")


@pytest.mark.parametrize(
    ("op", "phase", "expected"),
    [("log", "input", "input preparation"), ("input", "input", "input"), ("log", "loss", "loss computation"), ("log", "forward", "forward")],
)
def test_where_names_the_phase(op: str, phase: Any, expected: str) -> None:
    found = on_terminal(built(incident(birth=birth(operation(), op=op, phase=phase))))
    assert f"module head.loss, {expected}, step 12" in part(found, "where")


def test_where_names_the_dataset_indices_and_the_parameters() -> None:
    one = operation()
    many = birth(one, samples=tuple(range(64)), dataset_indices=tuple(range(100, 164)))
    where = one_line(part(on_terminal(built(incident(one, birth=many))), "where"))
    assert "rows 0, 1, 2, 3, 4, 5, 6, 7 and 56 more (64 in all) (dataset indices 100, 101," in where
    backward = birth(one, samples=None, parameters=("a.weight", "a.bias"), direction="backward", phase="backward")
    assert "backward, step 12, parameters a.weight, a.bias" in one_line(
        part(on_terminal(built(incident(one, birth=backward))), "where")
    )


def test_where_names_the_line_of_the_mistake_if_it_is_another() -> None:
    assert "the mistake: /home/me/train.py:7" in on_terminal(built(incident(diagnoses=(diagnosis(site=site(line=7)),))))
    assert "the mistake" not in on_terminal(built(incident()))


def test_evidence_gives_the_numbers_and_the_limit_they_cross() -> None:
    evidence = part(on_terminal(built(incident())), "evidence").splitlines()
    assert evidence[0] == "the smallest argument is 0.0, log needs more than 0"
    assert evidence[1] == "output: float32 64, -4 to 0, 3 of 64 -inf; float32 ends at 3.40e38"
    evidence = part(on_terminal(built(incident(diagnoses=()))), "evidence").splitlines()
    assert evidence[0] == "input: float32 64, 0 to 0.98, 3 of 64 zero"


def test_evidence_names_numbers_of_python_among_the_operands_and_single_values() -> None:
    one = operation(op="div", scalars={"other": 0.0}, outputs=(TensorStats((), "float32", nan=1),))
    evidence = part(on_terminal(built(incident(one, diagnoses=()))), "evidence").splitlines()
    assert evidence == ["input: float32 64, 0 to 0.98, 3 of 64 zero", "divisor: the number 0", "output: float32 scalar, NaN"]
    finite = operation(outputs=(TensorStats((1,), "float32", 2.5, 2.5, 2.5),))
    assert "output: float32 1, 2.5" in on_terminal(built(incident(finite, diagnoses=())))


def test_why_explains_the_mechanism_and_is_left_out_where_none_is_known() -> None:
    assert part(on_terminal(built(incident())), "why") == "log falls without bound as its argument nears 0."
    assert part(on_terminal(built(incident(diagnoses=()))), "why") == ""


def test_help_shows_the_change_and_how_to_try_it() -> None:
    lines = part(on_terminal(built(incident())), "help").splitlines()
    assert lines == [
        "use-log-softmax (for log-of-zero)",
        "  - torch.log(p)",
        "  + torch.log_softmax(z, -1)",
        "not tried; to try it, make the change and run the same command again",
    ]
    two = (Remedy("x", "y", "- a\n+ b"), Remedy("z", "y", "Take the other one."))
    assert part(on_terminal(built(incident(remedies=two))), "help").splitlines() == [
        "x (for y)",
        "  - a",
        "  + b",
        "z (for y)",
        "Take the other one.",
        "not tried; to try it, make the change and run the same command again",
    ]
    told = incident(remedies=(Remedy("x", "y", "+ z", reason="no snapshot"),))
    assert "not tried: no snapshot; to try it" in on_terminal(built(told))


def test_note_says_what_would_make_the_diagnosis_wrong_and_what_else_it_may_be() -> None:
    others = (diagnosis(), diagnosis(cause="masked-row", confidence=0.4))
    note = part(on_terminal(built(incident(diagnoses=others), limits=["could not rewrite helper.py"])), "note").splitlines()
    assert note == [
        "It is wrong if the rows were meant to be masked.",
        "Also possible: masked-row (0.4).",
        "Limit of this run: could not rewrite helper.py",
    ]
    assert "No cause of the catalogue fits" in part(on_terminal(built(incident(diagnoses=()))), "note")


def test_next_is_commands_to_copy() -> None:
    found = incident(folder="whynan runs/x/incident-1")
    assert part(on_terminal(built(found)), "next").splitlines() == [
        "whynan show --check 'whynan runs/x/incident-1'",
        "whynan explain log-of-zero",
    ]


def test_an_unplaced_incident_says_why_and_ends_with_the_command_that_places_it() -> None:
    text = on_terminal(built(unplaced("the step reads a socket.")))
    assert "no place was found" in part(text, "where")
    assert "The step could not be run again: the step reads a socket." in part(text, "note")
    assert part(text, "next") == "whynan run --trace-step 12 train.py --lr 3"
    module = built(unplaced(), script="-m package.train", argv=("a b",))
    assert part(on_terminal(module), "next") == "whynan run --trace-step 12 -m package.train 'a b'"
    other = built(unplaced(command="whynan run --trace-step 5 a.py"))
    assert part(on_terminal(other), "next") == "whynan run --trace-step 5 a.py"


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("input", "it came with the input of the step"),
        ("param", "it was already in a parameter before this step"),
        ("buffer", "it was already in a buffer before this step"),
    ],
)
def test_a_value_from_outside_the_step_is_told_as_such(op: str, words: str) -> None:
    assert words in on_terminal(built(incident(birth=birth(operation(), op=op))))


@pytest.mark.parametrize("width", [20, 60, 77, 200])
def test_lines_keep_to_the_terminals_width_and_to_60_at_least(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_terminal(built(incident(folder="r")), width, monkeypatch)
    assert max(map(len, text.splitlines())) <= max(width, 60)
    if width < 60:
        assert text == on_terminal(built(incident(folder="r")), 60, monkeypatch)


def test_commands_and_paths_are_never_broken() -> None:
    folder = "/" + "/".join(["a-long-name"] * 20)
    assert f"whynan show --check {folder}\n" in on_terminal(built(incident(folder=folder)))


@pytest.mark.parametrize(
    "source", ["x" * 500 + " + torch.log(p) + " + "y" * 500, "torch.log(p)" + "z" * 300, "z" * 300 + "torch.log(p)"]
)
def test_very_long_lines_are_shortened_around_the_culprit(source: str) -> None:
    start = source.index("torch.log(p)")
    lines = part(on_terminal(built(placed_at(source=source, column=(start + 4, start + 16)))), "where").splitlines()
    assert len(lines[1]) <= 90
    assert lines[1][lines[2].index("^") : lines[2].rindex("^") + 1] == "torch.log(p)"
    assert "..." in lines[1]


def test_a_very_long_culprit_is_cut() -> None:
    source = "torch.log(" + "p" * 500 + ")"
    lines = part(on_terminal(built(placed_at(source=source, column=(0, len(source)), expression=source))), "where").splitlines()
    assert len(lines[1]) <= 90
    assert len(lines[1]) == len(lines[2])


def test_tabs_and_wide_characters_do_not_shift_the_underline() -> None:
    source = "损失\t= torch.log(p)"
    lines = part(on_terminal(built(placed_at(source=source, column=(6, 18)))), "where").splitlines()
    before = lines[1][: lines[1].index("torch")]
    assert sum(2 if unicodedata.east_asian_width(each) == "W" else 1 for each in before) == lines[2].index("^")
    assert lines[2].count("^") == len("torch.log(p)")


@pytest.mark.parametrize(
    ("source", "expression", "at"),
    [
        ("d = torch.log(p) + torch.log(p)", "torch.log(p)", 4),
        ("d = torch.log(p) + torch.log(p)", "torch.log(p)", 19),
        ("d = p*p", "p", 4),
        ("d = p*p", "p", 6),
    ],
)
def test_of_two_equal_expressions_the_one_at_the_column_is_underlined(source: str, expression: str, at: int) -> None:
    column = (8 + at, 8 + at + len(expression))
    lines = part(on_terminal(built(placed_at(source=source, column=column, expression=expression))), "where").splitlines()
    assert lines[2].index("^") == 2 + at


@pytest.mark.parametrize("column", [None, (5, 3), (900, 910), (-1, 2)])
def test_a_column_that_cannot_be_does_no_harm(column: Any) -> None:
    lines = part(on_terminal(built(placed_at(column=column, expression=None))), "where").splitlines()
    assert lines[1] == "  d = torch.log(p)"


def test_nothing_from_the_user_acts_on_the_terminal() -> None:
    hostile = diagnosis(summary=HOSTILE, evidence=(HOSTILE,), why=HOSTILE, doubt=HOSTILE, cause=HOSTILE)
    one = operation(site(source=HOSTILE, function=HOSTILE, file=HOSTILE, column=None, expression=None), module=HOSTILE)
    found = incident(one, diagnoses=(hostile,), remedies=(Remedy(HOSTILE, HOSTILE, HOSTILE),), folder=HOSTILE)
    text = on_terminal(built(found, script=HOSTILE, limits=[HOSTILE]))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "[red]x[/red]" in text
    assert "\\x1b[31m\\x07\\u202e\\x9b2J" in text


def test_without_a_terminal_there_are_no_colours_and_with_one_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in on_terminal(built(incident()))

    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    coloured, plain = Tty(), Tty()
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal.render(built(incident()), coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.render(built(incident()), plain)
    assert "\x1b[1;36mwhat" in coloured.getvalue()
    assert "\x1b[1;36m" not in plain.getvalue()


def test_what_the_stream_cannot_write_is_shown_as_escapes() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    terminal.render(built(placed_at(source="损 = torch.log(p)")), stream)
    stream.flush()
    assert b"\\u635f = torch.log(p)" in stream.buffer.getvalue()  # type: ignore[attr-defined]


def test_a_clean_run_is_one_line() -> None:
    assert (
        on_terminal(document(Run("train.py", steps=3, status="clean"), [])) == "whynan: train.py: nothing went bad in 3 steps\n"
    )


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("watching ended while checking a loss: RuntimeError: x", "as long as it was watched, which was not to its end, in 3 steps"),
        ("the run was not watched: ImportError: x", "as long as it was watched"),
        (words.CUT_OFF, "no incident so far (killed, or still going on) in 3 steps"),
        ("could not rewrite x.py", "nothing went bad in 3 steps"),
    ],
)
def test_a_run_that_was_not_seen_to_its_end_is_not_called_clean(limit: str, expected: str) -> None:
    found = document(Run("train.py", steps=3, status="clean", limits=[limit]), [])
    assert expected in on_terminal(found)
    assert expected in as_markdown(found).replace("\\", "")


def test_statistics_of_nothing_finite_are_told() -> None:
    one = operation(outputs=(TensorStats((2, 3), "float16", nan=6),))
    assert "output: float16 2x3, 6 of 6 NaN" in on_terminal(built(incident(one)))
