import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seekgym.registration import ENVIRONMENTS
from seekgym.version import __version__


def seekgym(*arguments, cwd=None, stdin="", path=os.environ["PATH"]):
    return subprocess.run(
        [sys.executable, "-P", "-m", "seekgym", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        input=stdin,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PATH": path},
    )


def test_help_names_every_command():
    done = seekgym("--help")
    assert done.returncode == 0
    for command in ("list", "play", "bench", "show"):
        assert command in done.stdout
    assert "--episodes" in seekgym("bench", "--help").stdout
    assert seekgym("--version").stdout.strip() == f"seekgym {__version__}"


def test_list_names_every_environment_and_agent():
    out = seekgym("list").stdout
    assert all(environment.id in out for environment in ENVIRONMENTS)
    assert "retrieve-then-read" in out


def test_bench_prints_a_table_and_writes_both_files(tmp_path):
    done = seekgym(
        "bench", "--env", "seekgym/QA-v0", "--episodes", "10", "--agent", "oracle", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "oracle*" in done.stdout
    assert "10/10" in done.stderr
    [folder] = (tmp_path / "runs").iterdir()
    assert {path.name for path in folder.iterdir()} == {
        "results.json",
        "report.html",
        "trajectories.jsonl",
    }
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["command"].startswith("seekgym bench --env seekgym/QA-v0")
    shown = seekgym("show", folder / "trajectories.jsonl", "--number", "2")
    assert shown.returncode == 0
    assert "Return 1.00" in shown.stdout
    assert "turn 1 search(" in shown.stdout


def test_teams_are_played_beside_the_agents_and_shown(tmp_path):
    out = tmp_path / "out"
    arguments = ("--env", "seekgym/QA-v0", "--episodes", "5", "--agent", "oracle", "--out", out)
    done = seekgym("bench", *arguments, "--team", "seekgym/TeamQA-v0")
    assert done.returncode == 0, done.stderr
    assert "agents alone on the same 5 tasks" in done.stdout
    assert "scripted-team*" in done.stdout
    rows = json.loads((out / "TeamQA-v0.json").read_text(encoding="utf-8"))["rows"]
    players = ["random-team", "reading-team", "scripted-team", "oracle"]
    assert [row["player"] for row in rows] == players
    traces = out / "TeamQA-v0-scripted-team.jsonl"
    shown = seekgym("show", traces, "--number", "2").stdout
    assert "leader_0    assign" in shown
    assert shown.count("speed-up") == 1
    assert seekgym("show", traces, "--html", tmp_path / "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<table>") == 5
    for wrong in (("show", traces, "--number", "9"), ("bench", "--team", "seekgym/TeamQ-v0")):
        done = seekgym(*wrong)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    done = seekgym("show", out / "trajectories.jsonl", "--html", tmp_path / "x.html")
    assert done.returncode == 2
    assert "--html is for the traces of teams" in done.stderr


def test_bench_takes_a_folder_of_ones_own(tmp_path):
    documents = [{"id": f"d{i}", "title": f"T{i}", "text": f"word{i} is red"} for i in range(5)]
    tasks = [
        {"id": f"t{i}", "question": f"What is word{i}?", "answers": ["red"], "evidence": [f"d{i}"]}
        for i in range(5)
    ]
    for name, rows in (("corpus.jsonl", documents), ("tasks.jsonl", tasks)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for arguments in (
        ("--corpus", "corpus.jsonl", "--tasks", "tasks.jsonl"),
        ("--corpus", "."),
    ):
        done = seekgym("bench", *arguments, "--out", tmp_path / "out", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        rows = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["rows"]
        means = {row["agent"]: row["metrics"]["exact_match"]["mean"] for row in rows}
        assert means["oracle"] == 1.0
        assert (tmp_path / "out" / "report.html").exists()


def test_an_agent_of_ones_own_lies_in_the_working_folder(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from seekgym.agents import ClosedBookAgent\n"
        "class Mine(ClosedBookAgent):\n    name = 'mine'\n",
        encoding="utf-8",
    )
    done = seekgym(
        "bench", "--env", "seekgym/QA-v0", "--agent", "mine:Mine", "--jobs", "2", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout


def test_a_person_plays():
    done = seekgym(
        "play", "seekgym/QA-v0", "--seed", "0", stdin="search Nuno Diogo\n\nlook\nanswer x\n"
    )
    assert done.returncode == 0
    assert "central defender" in done.stdout
    assert "There is no tool 'look'" in done.stdout
    assert "Return 0.00. Gold answer: central defender." in done.stdout
    assert "Left the game" in seekgym("play", "seekgym/QA-v0", stdin="search x\n").stdout


def test_a_person_refines_a_query():
    typed = "titles: Lisbon\nadd\ntitles: Lisbon\nstop\n"
    done = seekgym("play", "seekgym/QueryRefinement-v0", "--seed", "0", stdin=typed)
    assert done.returncode == 0
    assert "is none of 0 to 29" not in done.stdout  # a name that is no choice now is still known
    assert "Query: Lisbon" in done.stdout
    assert "Choices: stop, add, require, forbid" in done.stdout
    assert "Return 0.57." in done.stdout


def test_a_person_chooses_from_a_menu_by_number_or_name():
    typed = f"{'9' * 5_000}\n0\nstop unknown\n"
    done = seekgym("play", "seekgym/PhantomMenu-v0", "--seed", "0", stdin=typed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("That is no choice") == 1
    assert "Return 0.00." in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["bench", "--nope"],
        ["bench", "--episodes", "many"],
        ["bench", "--episodes", "0"],
        ["bench", "--seed", "-1"],
        ["bench", "--jobs", "0"],
        ["bench", "--agent", "nobody"],
        ["bench", "--agent", "os:path"],
        ["bench", "--env", "seekgym/QA-v7"],
        ["bench", "--env", "nowhere/QA-v0"],
        ["bench", "--corpus", "nowhere"],
        ["bench", "--tasks", "nowhere"],
        ["bench", "--corpus", "hotpotqa-100", "--tasks", "nowhere"],
        ["bench", "--corpus", "hotpotqa-100", "--env", "seekgym/Other-v0"],
        ["bench", "--corpus", ""],
        ["bench", "--env", ""],
        ["bench", "--env", "bad id!"],
        ["bench", "--env", "nomodule:Foo-v0"],
        ["bench", "--agent", ":X"],
        ["bench", "--agent", ".x:Y"],
        ["bench", "--agent", "seekgym.agents:Agent"],
        ["bench", "--env", "seekgym/QA-v0", "--out", ""],
        ["bench", "--env", "seekgym/QA-v0", "--out", Path(__file__)],
        ["bench", "--env", "seekgym/QA-v0", "--out", Path(__file__) / "sub"],
        ["play", "nowhere"],
        ["play", "CartPole-v1"],
        ["play", "seekgym/QA-v0", "--task", "nope"],
        ["play"],
        ["show", "nowhere.jsonl"],
        ["show", os.devnull],
        ["show", Path(__file__)],
    ],
    ids=lambda arguments: " ".join(map(str, arguments))[:60],
)
def test_a_mistake_gives_one_line_and_exit_code_2(arguments, tmp_path):
    done = seekgym(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("seekgym: ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_bad_data_is_named_in_one_line(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"id": "a", "text": "x"}\n{"id"', encoding="utf-8")
    done = seekgym("bench", "--corpus", "corpus.jsonl", "--tasks", "t.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("seekgym: corpus.jsonl, line 2: not JSON")


MINE = """
import time
from seekgym.agents import ClosedBookAgent

class Evil(ClosedBookAgent):
    name = "<script>[/x][bold]"

class Slow(ClosedBookAgent):
    name = "slow"
    def act(self, observation, info):
        time.sleep(0.2)
        return super().act(observation, info)

class Nameless(ClosedBookAgent):
    name = None

class Breaks(ClosedBookAgent):
    name = "breaks"
    def act(self, observation, info):
        raise RuntimeError("boom")
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    return tmp_path


def test_names_with_markup_are_shown_as_they_are(mine):
    out = mine / "a[bold]b[/x]"
    done = seekgym(
        *("bench", "--env", "seekgym/QA-v0", "--agent", "mine:Evil", "--episodes", 2),
        *("--out", out),
        cwd=mine,
    )
    assert done.returncode == 0, done.stderr
    assert str(out / "results.json") in done.stdout
    assert (out / "report.html").exists()


def test_an_agent_without_a_name_is_refused_before_play(mine):
    done = seekgym("bench", "--agent", "mine:Nameless", "--env", "seekgym/QA-v0", cwd=mine)
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs a name" in done.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_bench_stops_at_once_and_keeps_what_was_played(mine, jobs):
    process = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "seekgym", "bench", "--env", "seekgym/QA-v0"),
            *("--out", "out", "--agent", "mine:Slow", "--episodes", "400", "--jobs", str(jobs)),
        ],
        cwd=mine,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # not as CI may have it
    )
    kept = mine / "out" / "trajectories.jsonl"
    try:
        while not (kept.exists() and kept.stat().st_size):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
            assert process.returncode is None
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=10) == 130
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert len(kept.read_text(encoding="utf-8").splitlines()) >= 20


def test_a_terminal_that_lacks_a_script_and_a_reader_that_goes_are_fine(tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-P", "-m", "seekgym"]
    done = subprocess.run(
        [*command, "play", "seekgym/QA-v0", "--seed", "0"],
        input=b"search Lisbon\n",
        capture_output=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    piped = subprocess.run(
        f"{sys.executable} -P -m seekgym list | head -1", shell=True, capture_output=True
    )
    assert piped.stderr == b""


def test_certify_prints_a_line_for_each_finding(tmp_path):
    done = seekgym("certify", "seekgym/PhantomEasy-v0", "--tasks", "40")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for name in ("proofs", "oracle", "closed book, chain", "descriptions", "leak, chain, 2h 0c"):
        assert any(line.startswith(name) for line in lines), name
    assert any("40 of 40 answers are right" in line and line.endswith("ok") for line in lines)


def test_certify_fails_where_a_finding_is_not_met(mine):
    (mine / "mine.py").write_text(UNPROVED, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-c", "import mine, seekgym.cli; seekgym.cli.main()"),
            *("certify", "mine/Unproved-v0"),
        ],
        cwd=mine,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONSAFEPATH": ""},
    )
    assert done.returncode == 1, done.stderr
    assert "0 of 1 are found step by step" in done.stdout
    assert "FAILED" in done.stdout


UNPROVED = """
import gymnasium as gym
from seekgym.corpora import Corpus, Document, ProofStep, Task, TaskSet
from seekgym.envs import QAEnv

def make():
    corpus = Corpus.from_documents([Document("d", "", "red"), Document("e", "", "blue")])
    task = Task("t", "?", ("red",), ("d",), proof=(ProofStep("blue", "d"),))
    return QAEnv(corpus, TaskSet([task]))

gym.register("mine/Unproved-v0", entry_point=make)
"""


def test_world_phantom_writes_a_world_that_can_be_played(tmp_path):
    out = tmp_path / "world"
    done = seekgym(
        "world", "phantom", "--people", 300, "--seed", 7, "--questions", 20, "--out", out
    )
    assert done.returncode == 0, done.stderr
    assert "Wrote 300 people and 20 tasks" in done.stdout
    assert {path.name for path in out.iterdir()} == {"corpus.jsonl", "tasks.jsonl", "facts.json"}
    played = seekgym("bench", "--corpus", out, "--agent", "oracle", "--out", tmp_path / "runs")
    assert played.returncode == 0, played.stderr
    rows = json.loads((tmp_path / "runs" / "results.json").read_text("utf-8"))["rows"]
    assert rows[0]["metrics"]["exact_match"]["mean"] == 1.0


@pytest.mark.parametrize(
    "arguments",
    [
        ["world", "phantom"],
        ["world", "phantom", "--people", "0", "--out", "x"],
        ["world", "phantom", "--split", "dev", "--out", "x"],
        ["world", "phantom", "--hops", "3", "1", "--out", "x"],
        ["world", "phantom", "--people", "20", "--questions", "9999999", "--out", "x"],
        ["world", "phantom", "--out", Path(__file__)],
        ["world", "atlantis"],
        ["certify", "seekgym/Nothing-v0"],
        ["certify", "seekgym/QA-v0", "--tasks", "0"],
        ["certify", "seekgym/QueryRefinement-v0"],
    ],
    ids=lambda arguments: " ".join(map(str, arguments))[:60],
)
def test_a_mistake_with_worlds_gives_one_line_too(arguments, tmp_path):
    done = seekgym(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("seekgym: ")


def test_doctor_says_what_works_and_how_to_get_the_rest():
    done = seekgym("doctor")
    assert done.returncode == 0, done.stderr
    for name in ("Python", "extra yaml", "fence", "rg", "grep", "Java", "torch"):
        assert f"\n{name} " in f"\n{done.stdout}"
    nothing = seekgym("doctor", path="")
    assert "install -y --no-install-recommends bubblewrap" in " ".join(nothing.stdout.split())


def test_trajectories_are_verified_and_can_be_shown(tmp_path):
    out = tmp_path / "deep" / "warm.jsonl"
    done = seekgym(
        *("trajectories", "Grep-v0", "--corpus", "phantom:people=50", "--oracle"),
        *("--tasks", "12", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    assert "Wrote 12 trajectories" in done.stdout
    assert len(out.read_text(encoding="utf-8").splitlines()) == 12
    assert "shell(command=" in seekgym("show", out, "--number", "1").stdout
    again = seekgym(
        "trajectories", "Grep-v0", "--corpus", "phantom:people=50", "--oracle", "--out", out
    )
    assert (again.returncode, "exists; remove it" in again.stderr) == (2, True)
    assert len(out.read_text(encoding="utf-8").splitlines()) == 12
    complaints = {
        "without proofs": ("QA-v0", "--oracle"),
        "say who plays": ("QA-v0",),
        "did you mean 'seekgym/Grep-v0'": ("Grap-v0", "--oracle"),
        "unknown argument 'corpus'": ("Phantom-50-v0", "--oracle", "--corpus", "x"),
    }
    for words, arguments in complaints.items():
        done = seekgym("trajectories", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert words in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "local"], "--agent local needs --model"),
        (["--agent", "chat", "--model", "m"], "--agent chat needs --base-url"),
        (["--model", "m"], "--model is for --agent local or --agent chat"),
        (["--agent", "random", "--base-url", "http://x"], "--base-url is for --agent local or"),
        (["--agent", "local", "--model", "/no/such"], "'/no/such': there is no such file"),
        (["--agent", "local", "--model", "smollm2"], "did you mean 'smollm2-135m'?"),
        (["--agent", "local", "--model", "tiny", "--protocol", "r1"], "unknown protocol 'r1'"),
        (["--agent", "sb3"], "--agent sb3 needs --model"),
        (["--agent", "sb3", "--model", "x", "--temperature", "1"], "not for sb3"),
    ],
)
def test_a_policy_that_cannot_be_made_is_one_line(arguments, words, tmp_path):
    found = seekgym("bench", *arguments, "--episodes", "1", "--out", str(tmp_path / "out"))
    assert found.returncode == 2
    assert words in found.stderr
    assert "Traceback" not in found.stderr


def test_bench_plays_a_local_model(tmp_path):
    arguments = ["--agent", "local", "--model", "tiny", "--env", "seekgym/Phantom-50-v0"]
    limits = ["--episodes", "2", "--max-tokens", "8", "--out", str(tmp_path / "out")]
    found = seekgym("bench", *arguments, *limits)
    assert found.returncode == 0, found.stderr
    assert "local tiny" in found.stdout
    assert len((tmp_path / "out" / "trajectories.jsonl").read_text().splitlines()) == 2


def test_training_writes_a_run_that_the_bench_plays_and_refuses_to_lose_it(tmp_path):
    folder, out = str(tmp_path / "run"), str(tmp_path / "out")
    small = '{"people": 50, "questions": 20}'
    command = ["train", "sb3", "--minutes", "0.02", "--env-args", small, "--out", folder]
    done = seekgym(*command)
    assert done.returncode == 0, done.stderr
    assert re.search(r"learned.*\d\.\d{3}", done.stdout)
    again = seekgym(*command)
    assert again.returncode == 2
    assert "resume it (--resume)" in again.stderr
    env = ["--env", "seekgym/PhantomMenu-v0", "--episodes", "2", "--out", out]
    played = seekgym("bench", "--agent", "sb3", "--model", folder, *env)
    assert played.returncode == 0, played.stderr
    assert "sb3" in played.stdout


def test_resuming_needs_the_folder():
    done = seekgym("train", "sb3", "--resume")
    assert done.returncode == 2
    assert "--resume needs --out" in done.stderr
