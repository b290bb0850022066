"""`whynan run` end to end: what the script prints and returns is the script's own; the report says the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import plain, surroundings, whynan

pytest.importorskip("torch")

BAD = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    x = torch.rand(8, 4)
    p = model(x).sigmoid() * (step != 3)
    loss = -torch.log(p).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
"""
GOOD = BAD.replace(" * (step != 3)", "")


def script(folder: Path, text: str) -> None:
    (folder / "train.py").write_text(text)


def report(path: Path) -> Any:
    return json.loads(path.read_bytes())


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """One run that an incident stops, looked at by several tests."""
    folder = tmp_path_factory.mktemp("stopped")
    script(folder, BAD)
    return folder, whynan("run", "--json", "r.json", "--markdown", "r.md", "train.py", cwd=folder)


def test_an_incident_stops_the_run_with_status_3(stopped: tuple[Path, Any]) -> None:
    folder, done = stopped
    assert done.returncode == 3
    expected = plain("train.py", cwd=folder).stdout
    assert expected.startswith(done.stdout)
    assert done.stdout.count(b"step") == 3


def test_its_report_is_written_everywhere(stopped: tuple[Path, Any]) -> None:
    folder, done = stopped
    found = report(folder / "r.json")
    assert (found["run"]["status"], found["run"]["exit_code"], found["run"]["script"]) == ("incident", None, "train.py")
    (incident,) = found["incidents"]
    assert (incident["step"], incident["origin"]["op"], incident["origin"]["line"]) == (3, "log", 9)
    assert b"train.py:9" in done.stderr
    assert b"torch.log(p)" in done.stderr
    assert (folder / "r.md").read_text().startswith("## ")
    assert report(folder / incident["folder"] / "report.json")["incidents"] == found["incidents"]


def test_it_can_be_shown_and_checked_again(stopped: tuple[Path, Any]) -> None:
    folder, _ = stopped
    assert whynan("show", "--json", cwd=folder).stdout == (folder / "r.json").read_bytes()
    checked = whynan("show", "--check", cwd=folder)
    assert checked.returncode == 3
    assert b"it still happens here" in checked.stdout


def test_a_clean_run_says_nothing_of_ours(tmp_path: Path) -> None:
    script(tmp_path, GOOD)
    expected, done = plain("train.py", cwd=tmp_path), whynan("run", "--json", "r.json", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, expected.stderr)
    found = report(tmp_path / "r.json")
    assert (found["run"]["status"], found["run"]["exit_code"], found["run"]["steps"]) == ("clean", 0, 6)
    assert found["incidents"] == []
    assert 0 <= found["run"]["overhead"] < 0.5


def test_quiet_is_one_line(tmp_path: Path) -> None:
    script(tmp_path, BAD)
    done = whynan("run", "--quiet", "--output", "kept", "train.py", cwd=tmp_path)
    assert done.returncode == 3
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("whynan: The loss became")
    assert "train.py:9" in line
    assert "kept/" in line


LATE = """\
import atexit, os, sys
atexit.register(print, "handler")
atexit.register(lambda: (sys.stdout.flush(), os.write(1, b"written\\n")))
"""


@pytest.mark.parametrize("options", [(), ("--quiet",), ("--json", "-")])
def test_what_exit_handlers_print_after_a_stop_goes_to_standard_error(tmp_path: Path, options: tuple[str, ...]) -> None:
    script(tmp_path, LATE + BAD)
    expected, done = plain("train.py", cwd=tmp_path), whynan("run", *options, "train.py", cwd=tmp_path)
    own, _, document = done.stdout.decode().partition("{")
    assert done.returncode == 3
    assert expected.stdout.decode().startswith(own)
    assert own.splitlines()[-1].startswith("step 2 ")
    assert bool(document) == ("-" in options)
    for line in ("handler", "written"):
        assert done.stderr.decode().splitlines().count(line) == 1


def test_after_a_run_that_ends_by_itself_it_goes_where_it_always_goes(tmp_path: Path) -> None:
    script(tmp_path, LATE + GOOD + "raise SystemExit(4)\n")
    expected, done = plain("train.py", cwd=tmp_path), whynan("run", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (4, expected.stdout, expected.stderr)


def test_a_document_on_standard_output_follows_the_scripts_last_byte(tmp_path: Path) -> None:
    script(tmp_path, "import atexit, sys\natexit.register(print, 'last')\nprint(sys.argv[1:])\n")
    done = whynan("run", "--json", "-", "train.py", "--json", "x", "--help", cwd=tmp_path)
    assert done.returncode == 0
    own, _, document = done.stdout.decode().partition("{")
    assert own == "['--json', 'x', '--help']\nlast\n"
    assert json.loads("{" + document)["run"]["argv"] == ["--json", "x", "--help"]


def test_a_script_that_never_trains_leaves_nothing_and_keeps_its_status(tmp_path: Path) -> None:
    script(tmp_path, "import sys\nprint('usage')\nsys.exit(5)\n")
    done = whynan("run", "--json", "r.json", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (5, b"usage\n", b"")
    assert (report(tmp_path / "r.json")["run"]["status"], report(tmp_path / "r.json")["run"]["exit_code"]) == ("error", 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "train.py"]


def test_a_module_gets_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    done = whynan("run", "--json", "r.json", "-m", "package.train", "-m", "x", "--help", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"__main__ ['-m', 'x', '--help']\n")
    run = report(tmp_path / "r.json")["run"]
    assert (run["script"], run["argv"]) == ("-m package.train", ["-m", "x", "--help"])


ENDS = {
    "crash": "raise ValueError('no')",
    "exit": "raise SystemExit(7)",
    "os._exit": "import os; os._exit(7)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("end", list(ENDS))
def test_however_the_script_ends_it_ends_so_and_what_was_recorded_is_readable(tmp_path: Path, end: str) -> None:
    script(tmp_path, GOOD + f"    if step == 3:\n        {ENDS[end]}\n")
    expected, done = plain("train.py", cwd=tmp_path), whynan("run", "train.py", cwd=tmp_path)
    assert done.returncode == expected.returncode
    assert done.stdout == expected.stdout
    assert done.stderr == expected.stderr
    shown = whynan("show", "--json", cwd=tmp_path)
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["run"]["status"] == "error"


def test_a_folder_that_cannot_be_written_costs_one_line(tmp_path: Path) -> None:
    script(tmp_path, BAD)
    (tmp_path / "file").write_text("")
    done = whynan("run", "train.py", cwd=tmp_path, WHYNAN_OUTPUT="file/runs")
    assert done.returncode == 3
    first, *rest = done.stderr.decode().splitlines()
    assert first.startswith("whynan: this run cannot be recorded in file/runs (")
    assert any("train.py:9" in line for line in rest)
    assert not any("cannot be recorded" in line for line in rest)


def test_nobody_reading_the_report_costs_only_the_report(tmp_path: Path) -> None:
    script(tmp_path, BAD)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "whynan", "run", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=surroundings(), stdout=subprocess.DEVNULL, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 3


def test_a_forked_child_is_not_the_run(tmp_path: Path) -> None:
    forks = "import os, sys\nif os.fork() == 0:\n    sys.exit(4)\nprint(os.waitstatus_to_exitcode(os.wait()[1]), os.listdir())\n"
    script(tmp_path, GOOD + forks)
    done = whynan("run", "--json", "r.json", "train.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith(b"4 [")
    assert b"r.json" not in done.stdout
    assert report(tmp_path / "r.json")["run"]["status"] == "clean"


def test_under_torchrun_the_first_rank_that_fails_reports(tmp_path: Path) -> None:
    script(tmp_path, BAD)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "whynan", "run"]
    done = subprocess.run(
        [*command, "--json", "r.json", "train.py"],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=180,
        check=False,
    )
    assert done.returncode == 1  # torchrun's own
    assert done.stderr.count(b"whynan show --check") == 1
    assert report(tmp_path / "r.json")["incidents"][0]["origin"]["line"] == 9
    assert any(name.endswith(("-rank0", "-rank1")) for name in os.listdir(tmp_path / "whynan-runs"))


def test_of_ranks_that_ran_together_the_one_with_the_incident_is_shown(tmp_path: Path) -> None:
    """Rank 0, which ends last, was fine until the others left it alone."""
    script(tmp_path, BAD.replace("(step != 3)", "(step != 3 or os.environ['RANK'] == '0')").replace("import torch", "import os, torch"))
    launch = {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "7", "MASTER_PORT": "29400"}
    statuses = [whynan("run", "train.py", cwd=tmp_path, RANK=rank, **launch).returncode for rank in ("1", "0")]
    assert statuses == [3, 0]
    shown = json.loads(whynan("show", "--json", cwd=tmp_path).stdout)
    assert shown["run"]["status"] == "incident"
    whynan("run", "train.py", cwd=tmp_path, RANK="0", WORLD_SIZE="2", TORCHELASTIC_RUN_ID="8")
    assert json.loads(whynan("show", "--json", cwd=tmp_path).stdout)["run"]["status"] == "clean"


def test_a_run_that_is_killed_from_outside_is_readable(tmp_path: Path) -> None:
    script(tmp_path, GOOD.replace("range(6)", "range(10**9)").replace('"loss", loss.item())', "flush=True)"))
    process = subprocess.Popen(
        [sys.executable, "-m", "whynan", "run", "train.py"], cwd=tmp_path, env=surroundings(), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process, process.stdout:
        try:
            assert b"step 10000\n" in iter(process.stdout.readline, b"")
        finally:
            process.send_signal(signal.SIGKILL)
    shown = json.loads(whynan("show", "--json", cwd=tmp_path).stdout)
    assert shown["run"]["steps"] > 10
    assert "this run did not come to its end" in shown["run"]["limits"][-1]
