"""The file of one run: a small SQLite database, written as the run goes on and readable after kill -9 at any moment.

Parts of the document are kept as the JSON they are rendered from. SQLite would turn NaN into NULL, which stands for what was not
measured, so numbers that are not finite are stored as the words that the report uses for them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from whynan.core.records import Trend

FILE = "run.sqlite"
VERSION = 1
APPLICATION = 0x77686E61  # "whna": tells a file of ours from any other SQLite file
SCHEMA = """
CREATE TABLE run (document TEXT NOT NULL, pid INTEGER NOT NULL, ended INTEGER NOT NULL, launch TEXT);
CREATE TABLE step (step INTEGER, loss, grad_norm, update_ratio, lr);
CREATE TABLE warning (step INTEGER, name TEXT, text TEXT);
CREATE TABLE incident (number INTEGER PRIMARY KEY, document TEXT NOT NULL, seen INTEGER NOT NULL DEFAULT 0);
"""

StepRow = tuple[int, float | None, float | None, float | None, float | None]
WarningRow = tuple[int, str, str]


class UnreadableRun(Exception):
    """The message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a run's file holds. `ended` is false where the run was killed or still goes on; `pid` is the process that wrote it."""

    run: str
    warnings: list[WarningRow]
    incidents: list[str]
    ended: bool
    pid: int
    steps: int
    unseen: int


class Store:
    """Writes a run's file. Every method may raise OSError or sqlite3.Error; the recorder decides what follows."""

    def __init__(self, folder: Path, run: str, launch: str | None = None) -> None:
        self.connection = sqlite3.connect(folder / FILE, isolation_level=None, check_same_thread=False, timeout=0.5)
        self.connection.execute("PRAGMA journal_mode=WAL")
        # A killed process loses nothing by this, only a machine that loses power does.
        self.connection.execute("PRAGMA synchronous=OFF")
        marks = f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION};"
        self.connection.executescript(f"BEGIN; {marks} {SCHEMA} COMMIT;")
        self.connection.execute("INSERT INTO run VALUES (?, ?, 0, ?)", (run, os.getpid(), launch))

    def add(self, steps: Iterable[StepRow] = (), warnings: Iterable[WarningRow] = ()) -> None:
        with self.transaction():
            self.connection.executemany("INSERT INTO step VALUES (?, ?, ?, ?, ?)", (tuple(map(stored, row)) for row in steps))
            self.connection.executemany("INSERT INTO warning VALUES (?, ?, ?)", warnings)

    def add_incident(self, number: int, document: str, run: str) -> None:
        with self.transaction():
            self.connection.execute("INSERT OR REPLACE INTO incident (number, document) VALUES (?, ?)", (number, document))
            self.connection.execute("UPDATE run SET document = ?", (run,))

    def remove_incident(self, number: int, run: str) -> None:
        with self.transaction():
            self.connection.execute("DELETE FROM incident WHERE number = ?", (number,))
            self.connection.execute("UPDATE run SET document = ?", (run,))

    def end(self, run: str) -> None:
        self.connection.execute("UPDATE run SET document = ?, ended = 1", (run,))

    def close(self) -> None:
        self.connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")


def stored(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def read(folder: Path) -> StoredRun:
    with reading(folder) as connection:
        row = connection.execute("SELECT document, ended, pid FROM run").fetchone()
        if row is None:
            raise UnreadableRun(f"the run in {folder} is broken: its file is empty")
        return StoredRun(
            run=row[0],
            warnings=connection.execute("SELECT step, name, text FROM warning ORDER BY rowid").fetchall(),
            incidents=[document for (document,) in connection.execute("SELECT document FROM incident ORDER BY number")],
            ended=bool(row[1]),
            pid=row[2],
            steps=connection.execute("SELECT coalesce(max(step) + 1, 0) FROM step").fetchone()[0],
            unseen=connection.execute("SELECT count(*) FROM incident WHERE seen = 0").fetchone()[0],
        )


def read_trend(folder: Path) -> Trend:
    with reading(folder) as connection:
        rows = connection.execute("SELECT step, loss, grad_norm, update_ratio, lr FROM step ORDER BY rowid").fetchall()
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return Trend(list(columns[0]), *([None if value is None else float(value) for value in column] for column in columns[1:]))


def launch_of(folder: Path) -> str | None:
    """The launch whose rank made the run; None of a single process, and of a run that cannot be read."""
    with contextlib.suppress(UnreadableRun), reading(folder) as connection:
        row = connection.execute("SELECT launch FROM run").fetchone()
        return row[0] if row is not None else None
    return None


def mark_seen(folder: Path) -> None:
    """Note that the user has seen the run's incidents; where the file cannot be written they stay unseen."""
    with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(sqlite3.connect(folder / FILE, timeout=2)) as connection:
        connection.execute("UPDATE incident SET seen = 1")
        connection.commit()


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write. Everything that can be wrong with the file becomes `UnreadableRun`."""
    if not (folder / FILE).is_file():
        raise UnreadableRun(f"no run in {folder}: it has no {FILE}")
    try:
        with contextlib.closing(connect_for_reading(folder / FILE)) as connection:
            check_version(connection, folder)
            yield connection
    except (sqlite3.Error, OSError, ValueError, TypeError, json.JSONDecodeError) as error:
        raise UnreadableRun(f"the run in {folder} is broken: {error}") from error


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Read-only; in a folder where not even SQLite's helper files can be made, as a file that nobody changes."""
    uri = path.absolute().as_uri()
    connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=2)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        connection = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
    return connection


def check_version(connection: sqlite3.Connection, folder: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise UnreadableRun(f"the run in {folder} is broken: its {FILE} was not written by whynan")
    if version > VERSION:
        formats = f"format {version}, this one reads {VERSION}"
        raise UnreadableRun(f"the run in {folder} was written by a newer whynan ({formats}): upgrade whynan")
