"""Which documents of a run gave their tasks away."""

import json
import os
import subprocess
import sys

import pytest

from seekgym.agents.rollouts import Trajectory, Turn, write_trajectories
from seekgym.corpora.live import LeakRules
from seekgym.leaderboard import EnvironmentChoice, audit, evaluate

QUESTION = "Which brother of the painter of the tall blue tower was born in Ribe?"


def episode(*turns, task="t1"):
    return Trajectory(
        environment="seekgym/QA-v0",
        arguments={},
        env_hash="x",
        seed=0,
        task_id=task,
        agent="someone",
        question=QUESTION,
        turns=tuple(turns),
        outcome={"gold_answers": ["Otto"]},
    )


def turn(observation, *documents, error=None):
    return Turn({"name": "search", "arguments": {}}, observation, 0.0, {}, error, documents)


def test_each_document_is_blamed_for_its_own_text():
    shown = f"1. [d1] Clean\nAll is well.\n\n2. [d2] Quiz\n{QUESTION}\n\n3. [d3] Clean\nToo."
    rows = list(audit([episode(turn("", "d1"), turn(shown, "d1", "d2", "d3"))]))
    assert [(row.turn, row.document, row.rule) for row in rows] == [(2, "d2", "question")]


def test_texts_without_a_document_count_as_one():
    rows = list(audit([episode(turn(f"./quiz.txt: {QUESTION}"))]))
    assert [(row.document, row.rule) for row in rows] == [("", "question")]


def test_an_episode_names_a_document_once_for_each_rule():
    shown = turn(f"[d2] Quiz\n{QUESTION}", "d2")
    assert len(list(audit([episode(shown, shown), episode(shown, task="t2")]))) == 2


def test_errors_are_no_documents():
    assert not list(audit([episode(turn(f"There is no page {QUESTION!r}.", error="unknown_url"))]))


def test_pages_are_known_by_their_addresses():
    pages = turn("A page\nhttps://hub.example/data/x\nText", "https://hub.example/data/x")
    for rules, rule in (
        (LeakRules(domains=("hub.example",)), "domain"),
        (LeakRules(patterns=("/data/",)), "pattern"),
        (LeakRules(canaries=("a page",)), "canary"),
    ):
        assert [row.rule for row in audit([episode(pages)], rules)] == [rule]
    assert not list(audit([episode(pages)]))


def test_forbidden_texts_belong_to_a_task():
    shown = turn("[d1] x\nThe secret list", "d1")
    rows = audit([episode(shown), episode(shown, task="t2")], forbidden={"t2": ["secret list"]})
    assert [row.task_id for row in rows] == ["t2"]


def run_audit(*arguments):
    return subprocess.run(
        [sys.executable, "-P", "-m", "seekgym", "audit", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
    )


def test_the_command_lists_what_leaked(tmp_path):
    path = tmp_path / "trajectories.jsonl"
    write_trajectories([episode(turn(f"[d\x1b2] Quiz\n{QUESTION}", "d\x1b2")), episode()], path)
    done = run_audit(tmp_path)
    assert done.returncode == 1
    assert "1 documents leaked, in 1 of 2 episodes" in done.stdout
    assert "d\ufffd2" in done.stdout
    (tmp_path / "forbidden.jsonl").write_text(json.dumps({"task": "t1", "texts": ["Quiz"]}))
    done = run_audit(path, "--forbidden", tmp_path / "forbidden.jsonl")
    assert "13 words" in done.stdout


def test_a_clean_run_is_said_to_be_clean(tmp_path):
    write_trajectories([episode(turn("[d1] x\nWell.", "d1"))], tmp_path / "trajectories.jsonl")
    done = run_audit(tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 documents leaked, in 0 of 1 episodes\n")


@pytest.mark.parametrize(
    ("arguments", "said"), [([], "trajectories.jsonl"), (["--pattern", "("], "patterns")]
)
def test_a_mistake_gives_one_line(tmp_path, arguments, said):
    if arguments:
        write_trajectories([episode()], tmp_path / "trajectories.jsonl")
    done = run_audit(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "choice",
    [
        EnvironmentChoice("seekgym/QA-v0"),
        EnvironmentChoice("seekgym/Phantom-50-v0"),
        EnvironmentChoice("seekgym/KnowledgeGraph-v0"),
    ],
    ids=lambda choice: choice.id,
)
def test_runs_of_environments_can_be_audited(choice):
    played = evaluate(["oracle"], [choice], episodes=15).episodes
    trajectories = [episode.trajectory for episode in played]
    assert {row.rule for row in audit(trajectories)} <= {"question and answer"}
    told = {t.task_id: [" ".join(t.turns[0].observation.split()[-5:])] for t in trajectories}
    assert {row.task_id for row in audit(trajectories, forbidden=told)} >= set(told)
