"""The folder of a training run: whole or not at all, whenever it is killed."""

import io
import json
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from seekgym.agents.training import display, run
from seekgym.agents.training.curves import draw_curves
from seekgym.agents.training.display import TrainingDisplay
from seekgym.agents.training.run import RunFolder
from seekgym.corpora import ConfigurationError, CorpusError
from seekgym.corpora.errors import MissingExtraError

CONFIG = {"seed": 0, "env": "seekgym/QA-v0", "rate": 0.1}
CHILD = """
import sys
from seekgym.agents.training.run import RunFolder

run = RunFolder.begin(sys.argv[1], {"seed": 0}, resume=True)
newest = run.newest()
step = newest[0] if newest else 0
run.trim(step)
print("ready", flush=True)

def write(place):
    for name in "abcd":
        (place / name).write_text(f"{step} " * 2000)

while True:
    step += 1
    run.log({"step": step, "text": "x" * 500})
    run.save(step, write)
"""


@pytest.fixture
def begin(tmp_path):
    runs = []

    def opened(config=CONFIG, *, resume=False, name="run"):
        for begun in runs:
            begun.close()
        runs.append(RunFolder.begin(tmp_path / name, config, resume=resume))
        return runs[-1]

    yield opened
    for begun in runs:
        begun.close()


def write_step(step):
    def write(place):
        (place / "deep").mkdir()
        (place / "deep" / "weights").write_text(str(step))

    return write


def test_a_run_keeps_settings_log_and_the_last_checkpoints(begin):
    run = begin()
    for step in (10, 20, 30):
        run.log({"step": step, "loss": 1 / step, "note": "é", "nothing": None})
        run.save(step, write_step(step))
    again = begin(resume=True)
    assert json.loads((again.path / "config.json").read_text()) == CONFIG == again.config
    assert [record["step"] for record in again.records()] == [10, 20, 30]
    assert again.records()[0] == {"step": 10, "loss": 0.1, "note": "é", "nothing": None}
    step, place = again.newest()
    assert (step, (place / "deep" / "weights").read_text()) == (30, "30")
    assert sorted(p.name for p in place.parent.iterdir()) == ["step-00000020", "step-00000030"]


def test_a_folder_with_a_run_is_refused_unless_it_is_resumed(begin):
    begin().log({"step": 1})
    with pytest.raises(ConfigurationError, match="holds a run already; resume it"):
        begin()
    assert begin(resume=True).records() == [{"step": 1}]


def test_a_start_that_failed_is_not_in_the_way(begin):
    begin({"rate": 0.7})
    assert begin().config == CONFIG
    assert begin({"rate": 0.9}, resume=True).config == {"rate": 0.9}


def test_what_was_logged_after_the_last_checkpoint_is_done_again(begin):
    run = begin()
    run.log({"step": 0})
    assert (run.resume_point(), run.records()) == (None, [])
    for step in (1, 2):
        run.log({"step": step})
        run.save(step, write_step(step))
    run.log({"step": 3})
    step, _ = run.resume_point()
    assert (step, [record["step"] for record in run.records()]) == (2, [1, 2])


def test_other_settings_are_named_with_both_values(begin):
    begin().log({"step": 1})
    with pytest.raises(ConfigurationError, match=r"more was None, is 2; rate was 0\.1, is 0\.5;"):
        begin(CONFIG | {"rate": 0.5, "more": 2}, resume=True)
    assert begin(resume=True).config == CONFIG


def test_a_run_that_never_began_can_be_resumed(begin):
    assert begin(resume=True).newest() is None


def test_files_of_something_else_are_refused_and_stay(begin, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"holds 'mine\.txt' and no config\.json"):
        begin(name="notes")
    with pytest.raises(ConfigurationError, match="is a file"):
        begin(name="file")
    assert sorted(p.name for p in (tmp_path / "notes").iterdir()) == ["mine.txt"]


def test_a_config_that_json_cannot_hold_is_refused(begin, tmp_path):
    with pytest.raises(ConfigurationError, match="config must be what JSON can hold"):
        begin({"rate": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_one_process_at_a_time(begin, tmp_path):
    run = begin()
    with pytest.raises(ConfigurationError, match="another process writes this run"):
        RunFolder.begin(run.path, CONFIG, resume=True)


def test_a_line_needs_its_step_and_holds_no_nan(begin):
    run = begin()
    for step in (None, "3", 1.5):
        with pytest.raises(ConfigurationError, match="'step' must be a whole number"):
            run.log({"step": step})
    run.log({"step": 1, "loss": float("nan"), "norm": float("inf")})
    assert run.records() == [{"step": 1, "loss": None, "norm": None}]


def test_a_torn_line_is_dropped_and_a_broken_one_is_not(begin):
    run = begin()
    run.log({"step": 1})
    log = run.path / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"step": 2, "lo')
    assert begin(resume=True).records() == [{"step": 1}]
    assert log.read_bytes() == whole
    log.write_bytes(b"nonsense\n" + whole)
    with pytest.raises(CorpusError, match=r"log\.jsonl:1: not a line of a log"):
        begin(resume=True).records()


def test_lines_after_a_checkpoint_are_trimmed(begin):
    run = begin()
    for step in (1, 2, 2, 3):
        run.log({"step": step, "name": "ü"})
    run.trim(2)
    assert [record["step"] for record in run.records()] == [1, 2, 2]


def test_a_checkpoint_that_fails_leaves_nothing(begin):
    run = begin()
    run.save(1, write_step(1))

    def fail(place):
        (place / "half").write_text("half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        run.save(2, fail)
    assert run.newest()[0] == 1
    assert begin(resume=True).newest()[0] == 1
    assert [p.name for p in (run.path / "checkpoints").iterdir()] == ["step-00000001"]


def test_a_saved_step_keeps_what_it_has(begin):
    run = begin()
    run.save(1, write_step("first"))
    run.save(1, write_step("second"))
    assert (run.newest()[1] / "deep" / "weights").read_text() == "first"
    with pytest.raises(ConfigurationError, match="keep must be at least 1"):
        run.save(2, write_step(2), keep=0)


def test_a_checkpoint_that_is_half_removed_is_none(begin, monkeypatch):
    begun = begin()
    begun.save(1, write_step(1))

    def stop(path, **options):
        if path.exists():
            (path / "deep" / "weights").unlink()
            raise KeyboardInterrupt

    monkeypatch.setattr(run.shutil, "rmtree", stop)
    with pytest.raises(KeyboardInterrupt):
        begun.save(2, write_step(2), keep=1)
    monkeypatch.undo()
    named = [p for p in (begun.path / "checkpoints").iterdir() if p.name.startswith("step-")]
    assert [p.name for p in named] == ["step-00000002"]
    again = begin(resume=True)
    assert list((again.path / "checkpoints").iterdir()) == [again.newest()[1]]


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011, 0.029, 0.05])
def test_a_kill_at_any_instant_leaves_a_run_that_goes_on(tmp_path, delay):
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout.readline() == "ready\n"
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
            child.wait(10)
        run = RunFolder.begin(tmp_path / "run", {"seed": 0}, resume=True)
        steps = [record["step"] for record in run.records()]
        assert steps == list(range(1, len(steps) + 1))
        newest = run.newest()
        if newest is not None:
            assert len(steps) - newest[0] in (0, 1)
            for place in newest[1].parent.iterdir():
                step = int(place.name.removeprefix("step-"))
                assert sorted(p.name for p in place.iterdir()) == list("abcd")
                assert {p.read_text() for p in place.iterdir()} == {f"{step} " * 2000}
        run.close()


RECORDS = [
    {"step": 0, "seconds": 0.0, "return <&>": 0.1, "note": "text"},
    {"step": 10, "seconds": 2.5, "return <&>": None, "loss": 0.5},
    {"step": 20, "seconds": 5.0, "return <&>": 0.9, "loss": 0.25},
]


def test_curves_are_equal_for_equal_records_and_need_nothing_else(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        draw_curves(RECORDS, tmp_path / name)
    for file in ("curves.png", "curves.html"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["curves.html", "curves.png"]
    assert (tmp_path / "a" / "curves.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "a" / "curves.html").read_text()
    assert page.count("<figure>") == page.count("<polyline") == 2
    assert "return &lt;&amp;&gt;" in page
    assert "20 steps in 5 seconds" in page
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page
    assert "note" not in page


def test_curves_of_chosen_fields_of_many_records_and_of_none(tmp_path):
    draw_curves(RECORDS, tmp_path, fields=["loss"])
    assert (tmp_path / "curves.html").read_text().count("<figure>") == 1
    draw_curves([{"step": n, "loss": n % 11} for n in range(5000)], tmp_path)
    page = (tmp_path / "curves.html").read_text()
    assert 300 < page.count(",") < 500
    assert "5 at the end" in page  # 4999 % 11
    draw_curves([], tmp_path)
    assert "Nothing is logged yet" in (tmp_path / "curves.html").read_text()


def test_curves_leave_the_state_of_pyplot_alone(tmp_path):
    code = (
        "import sys; from seekgym.agents.training.curves import draw_curves; "
        f"print('matplotlib' in sys.modules); draw_curves([], {str(tmp_path)!r}); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_a_missing_matplotlib_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"seekgym\[train\]"):
        draw_curves(RECORDS, tmp_path)


def test_where_there_is_no_terminal_a_line_comes_every_ten_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    with TrainingDisplay(Console(file=out), title="ppo [x]", total=60) as shown:
        for second in range(25):
            now[0] = 100.0 + second
            shown.show(second, {"return": second / 24, "step": 1000 * second, "eval": None})
    assert out.getvalue().splitlines() == [
        "ppo [x] 0% | return 0 | step 0",
        "ppo [x] 17% | return 0.417 | step 10,000",
        "ppo [x] 33% | return 0.833 | step 20,000",
    ]


def test_on_a_terminal_one_line_lives():
    out = io.StringIO()
    terminal = Console(file=out, force_terminal=True, width=100)
    with TrainingDisplay(terminal, title="ppo", total=60) as shown:
        shown.show(30, {"return": 0.5})
    assert "50%" in out.getvalue()
    assert "return 0.5" in out.getvalue()
