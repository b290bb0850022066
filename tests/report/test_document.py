"""The document is the contract: every key is there, unknown values are null, no number is lost."""

from __future__ import annotations

import json
from typing import Any

from tests.report.samples import HOSTILE, built, diagnosis, incident, operation, placed_at, site, unplaced
from whynan.core.incident import Run
from whynan.core.records import TensorStats, Trend
from whynan.core.session import Seed
from whynan.report import json as report_json
from whynan.report.document import document

ORIGIN = [
    "direction",
    "op",
    "call",
    "autograd_node",
    "file",
    "line",
    "column",
    "function",
    "source",
    "module",
    "samples",
    "dataset_indices",
    "parameters",
    "inputs",
    "output",
]
INCIDENT = ["step", "kind", "phase", "first_seen", "origin", "chain", "causes", "remedies", "replay", "trend", "folder"]


def parsed(found: Any) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(report_json.render(found), parse_constant=refuse)


def test_a_clean_run_has_every_key_and_no_incident() -> None:
    report = parsed(document(Run("train.py", ("-v",), backend_version="2.13.0", steps=3, status="clean", exit_code=0), []))
    assert report == {
        "schema": "whynan.report/1",
        "run": {
            "script": "train.py",
            "argv": ["-v"],
            "backend": "torch",
            "backend_version": "2.13.0",
            "steps": 3,
            "status": "clean",
            "exit_code": 0,
            "overhead": 0.0,
            "limits": [],
        },
        "warnings": [],
        "incidents": [],
    }


def test_an_incident_has_every_key_of_the_contract_in_its_order() -> None:
    found = parsed(built(incident()))["incidents"][0]
    assert [key for key in found if key in INCIDENT] == INCIDENT
    assert [key for key in found["origin"] if key in ORIGIN] == ORIGIN
    assert found["origin"]["op"] == "log"
    assert found["origin"]["call"] == "torch.log"
    assert found["origin"]["samples"] == [17, 40, 41]
    assert found["origin"]["inputs"][0]["role"] == "input"
    assert found["origin"]["inputs"][0]["zero"] == 3
    assert found["origin"]["output"]["neginf"] == 3
    assert found["chain"][0]["op"] == "log"
    assert found["replay"]["reproduced"] is True


def test_an_unplaced_incident_has_nulls_for_its_origin_and_the_reason() -> None:
    found = parsed(built(unplaced("the step reads a socket")))["incidents"][0]
    assert [key for key in found["origin"] if key in ORIGIN] == ORIGIN
    assert {key: found["origin"][key] for key in ORIGIN} == dict.fromkeys(ORIGIN) | {"inputs": []}
    assert found["phase"] is None
    assert found["replay"]["reproduced"] is False
    assert found["replay"]["reason"] == "the step reads a socket"


def test_numbers_that_are_not_finite_become_words() -> None:
    trend = parsed(built(incident()))["incidents"][0]["trend"]
    assert trend["loss"] == [2.3, "nan"]
    assert trend["grad_norm"] == [1.0, "inf"]
    assert trend["update_ratio"] == ["-inf", 0.1]


def test_what_was_not_measured_is_unknown() -> None:
    found = incident()
    found.session.trend = Trend([0], [None], [float("nan")], [None], [None])
    assert parsed(built(found))["incidents"][0]["trend"] == {"steps": [0], "loss": [None], "grad_norm": ["nan"], "update_ratio": [None], "lr": [None]}
    run = Run("train.py")
    assert report_json.assemble(report_json.encode_run(run), [], [report_json.encode_incident(run, found)]).incidents[0].trend.loss == [None]


def test_a_cause_without_a_line_stands_at_the_birth_and_else_where_it_was_seen() -> None:
    assert parsed(built(incident()))["incidents"][0]["causes"][0]["line"] == {"file": "/home/me/train.py", "line": 42}
    lost = incident(birth=None, diagnoses=(diagnosis(),))
    assert parsed(built(lost))["incidents"][0]["causes"][0]["line"] == {"file": "/home/me/train.py", "line": 50}
    nowhere = incident(birth=None, site=None, diagnoses=(diagnosis(),))
    assert parsed(built(nowhere))["incidents"][0]["causes"][0]["line"]["file"] == "train.py"


def test_a_cause_with_a_line_of_its_own_keeps_it() -> None:
    made = incident(diagnoses=(diagnosis(site=site(line=7)),))
    assert parsed(built(made))["incidents"][0]["causes"][0]["line"]["line"] == 7


def test_the_kind_comes_from_the_birth_then_the_session_then_the_values_seen() -> None:
    infinite = (Seed("loss", "loss", 0, TensorStats((), "float32", posinf=1)),)
    assert built(incident()).incidents[0].kind == "inf"
    assert built(incident(birth=None, kind="divergence")).incidents[0].kind == "divergence"
    assert built(incident(birth=None, seeds=infinite)).incidents[0].kind == "inf"
    assert built(incident(birth=None)).incidents[0].kind == "nan"


def test_the_output_shown_is_the_one_that_is_not_finite() -> None:
    fine, sick = TensorStats((2,), "float32", 0.0, 1.0, 1.0), TensorStats((3,), "float32", nan=3)
    output = built(incident(operation(outputs=(fine, sick)))).incidents[0].origin.output
    assert output is not None
    assert output.shape == [3]


def test_hostile_text_survives_as_it_is() -> None:
    found = parsed(built(placed_at(source=HOSTILE, function=HOSTILE)))["incidents"][0]["origin"]
    assert found["source"] == HOSTILE
    assert found["function"] == HOSTILE


def test_file_names_that_are_no_utf8_can_be_written() -> None:
    assert parsed(built(placed_at(file="/tmp/\udcff.py")))["incidents"][0]["origin"]["file"] == "/tmp/\\udcff.py"


def test_the_document_comes_back_from_its_parts() -> None:
    run = Run("train.py", ("--lr", "3"), steps=13, status="incident")
    again = report_json.assemble(report_json.encode_run(run), [], [report_json.encode_incident(run, incident())])
    assert again == built(incident())
