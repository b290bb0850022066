"""Shows what a run found: the documents asked for, and on standard error the report of an incident. A clean run says nothing
(warnings were told while it went on)."""

from __future__ import annotations

from whynan.cli.outputs import Output
from whynan.cli.stderr import complain, speaking
from whynan.record.recorder import RunRecorder
from whynan.record.store import mark_seen
from whynan.report import words
from whynan.report.document import document
from whynan.report.model import Document, Warned


def present(recorder: RunRecorder, outputs: list[Output], *, quiet: bool) -> None:
    found = document(recorder.run, recorder.incidents, [Warned(*warning) for warning in recorder.warnings])
    for output in outputs:
        output.write(found)
    if found.incidents and quiet:
        for incident in found.incidents:
            complain(words.one_line(incident))
    elif found.incidents:
        print_report(recorder, found)


def print_report(recorder: RunRecorder, found: Document) -> None:
    from whynan.report.terminal import render

    with speaking() as stream:
        if stream is not None:
            render(found, stream)
            if stream.isatty() and recorder.folder is not None:
                mark_seen(recorder.folder)
