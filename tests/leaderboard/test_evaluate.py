import json
import re

import numpy as np
import pytest

from seekgym.agents import AGENTS, OracleAgent
from seekgym.corpora import ConfigurationError
from seekgym.envs import F1
from seekgym.leaderboard import (
    EnvironmentChoice,
    bootstrap_mean,
    evaluate,
    write_report,
)

QA = EnvironmentChoice("seekgym/QA-v0")


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(list(AGENTS), [QA], episodes=30, seed=0)


def test_every_agent_plays_the_same_tasks_once(evaluation):
    by_agent = {}
    for episode in evaluation.episodes:
        by_agent.setdefault(episode.agent, []).append(episode.trajectory.task_id)
    assert set(by_agent) == set(AGENTS)
    first = by_agent["oracle"]
    assert all(tasks == first for tasks in by_agent.values())
    assert len(set(first)) == 30


def test_the_result_does_not_depend_on_the_number_of_processes(evaluation):
    again = evaluate(list(AGENTS), [QA], episodes=30, seed=0, jobs=2)
    assert again.rows == evaluation.rows
    assert [e.trajectory.to_json() for e in again.episodes] == [
        e.trajectory.to_json() for e in evaluation.episodes
    ]


def test_more_episodes_than_tasks_start_again():
    found = evaluate(["closed-book"], [QA], episodes=130, seed=1)
    tasks = [episode.trajectory.task_id for episode in found.episodes]
    assert len(set(tasks[:100])) == 100
    assert tasks[100:] == tasks[:30]
    assert len({episode.trajectory.seed for episode in found.episodes}) == 130


def test_progress_is_told(evaluation):
    told = []
    evaluate(["oracle"], [QA], episodes=50, on_progress=lambda *done: told.append(done))
    assert told == [(0, 50), (20, 50), (40, 50), (50, 50)]


def test_wrong_choices_are_refused():
    with pytest.raises(ConfigurationError, match="unknown agent"):
        evaluate(["nobody"], [QA])
    with pytest.raises(ConfigurationError, match="seekgym/QA-v9"):
        evaluate(["oracle"], [EnvironmentChoice("seekgym/QA-v9")])
    with pytest.raises(ConfigurationError, match="no search environment"):
        evaluate(["oracle"], [EnvironmentChoice("CartPole-v1")])
    for name in ("episodes", "jobs"):
        with pytest.raises(ConfigurationError, match=name):
            evaluate(["oracle"], [QA], **{name: 0})


class Flaky:
    """Fails in every third call."""

    name = "flaky"
    calls = 0

    def search(self, queries, k):
        self.calls += 1
        if self.calls % 3 == 0:
            raise ConnectionError("down")
        return [[] for _ in queries]


class Down:
    name = "down"

    def search(self, queries, k):
        raise ConnectionError("down")


def test_episodes_lost_to_the_backend_are_repeated_and_then_counted_apart():
    flaky = evaluate(["retrieve-then-read"], [with_retriever(Flaky())], episodes=20)
    assert (flaky.rows[0].episodes, flaky.rows[0].failed) == (20, 0)
    down = evaluate(["retrieve-then-read"], [with_retriever(Down())], episodes=5)
    assert (down.rows[0].episodes, down.rows[0].failed) == (0, 5)
    assert down.rows[0].metrics["exact_match"] is None


def with_retriever(retriever):
    return EnvironmentChoice("seekgym/QA-v0", {"retriever": retriever})


def test_results_and_report_are_whole(evaluation, tmp_path):
    write_report(evaluation, tmp_path / "out", command="seekgym bench <x>")
    text = (tmp_path / "out" / "results.json").read_text(encoding="utf-8")
    results = json.loads(text, parse_constant=pytest.fail)
    assert len(results["rows"]) == 5
    assert len(results["episodes"]) == 150
    oracle = next(row for row in results["rows"] if row["agent"] == "oracle")
    assert oracle["sees_gold"] is True
    assert oracle["metrics"]["exact_match"] == {"mean": 1.0, "low": 1.0, "high": 1.0, "number": 30}
    assert set(oracle["kinds"]) == {"bridge", "comparison"}
    lines = (tmp_path / "out" / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 150
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org)""", page)
    assert page.count("<details>") == 3
    assert page.count("<circle") == 5
    assert "oracle (sees gold)" in page
    assert "seekgym bench &lt;x&gt;" in page
    assert "95% bootstrap interval" in page


def test_the_bootstrap_interval_is_right():
    values = list(np.random.default_rng(0).normal(3.0, 2.0, size=400))
    found = bootstrap_mean(values, seed=0)
    error = 1.96 * np.std(values) / 20
    assert found.mean == pytest.approx(np.mean(values))
    assert found.low == pytest.approx(found.mean - error, abs=0.03)
    assert found.high == pytest.approx(found.mean + error, abs=0.03)
    assert bootstrap_mean(values, seed=0) == found
    assert bootstrap_mean([None, 1.0, None], seed=0) == (1.0, 1.0, 1.0, 1)
    assert bootstrap_mean([None], seed=0) is None
    assert bootstrap_mean([], seed=0) is None


def test_choices_of_one_id_are_told_apart(tmp_path, write):
    few = EnvironmentChoice("seekgym/QA-v0", {"k": 1})
    more = EnvironmentChoice("seekgym/QA-v0", {"k": 3})
    found = evaluate(["oracle", "oracle"], [few, more, few], episodes=5)
    assert [row.environment for row in found.rows] == [few.label, more.label]
    assert len({row.env_hash for row in found.rows}) == 2
    assert [episode.environment for episode in found.episodes] == [few.label] * 5 + [more.label] * 5


def test_kinds_are_those_of_each_choice_and_files_are_read_anew(write):
    corpus = write("c.jsonl", [{"id": "d", "text": "red"}])

    def tasks(kind, count):
        row = {"question": "?", "answers": ["red"], "evidence": ["d"], "kind": kind}
        return write(f"{kind}.jsonl", [{**row, "id": f"t{i}"} for i in range(count)])

    def choice(kind):
        arguments = {"corpus": str(corpus), "tasks": str(corpus.parent / f"{kind}.jsonl")}
        return EnvironmentChoice("seekgym/QA-v0", arguments)

    tasks("a", 1)
    tasks("b", 1)
    found = evaluate(["oracle"], [choice("a"), choice("b")])
    assert [list(row.kinds) for row in found.rows] == [["a"], ["b"]]
    tasks("a", 5)
    assert evaluate(["oracle"], [choice("a")]).rows[0].episodes == 5


def test_reward_terms_can_be_evaluated():
    choice = EnvironmentChoice("seekgym/QA-v0", {"rewards": [F1(2.0)]})
    assert evaluate(["oracle"], [choice], episodes=2).rows[0].metrics["return"].mean == 2.0


class Counted(OracleAgent):
    name = "counted"
    made = 0

    def __init__(self, env):
        super().__init__(env)
        Counted.made += 1


def test_an_agent_is_made_once(monkeypatch):
    monkeypatch.setitem(AGENTS, "counted", Counted)
    evaluate(["counted"], [QA], episodes=60)
    assert Counted.made == 1


def test_episodes_are_told_as_they_are_played():
    told = []
    evaluate(["oracle"], [QA], episodes=30, on_played=lambda played: told.append(len(played)))
    assert told == [20, 10]


def test_a_menu_is_played_by_those_who_can_choose():
    menu = EnvironmentChoice("seekgym/PhantomMenu-v0", {"people": 50, "questions": 20})
    found = evaluate(["random", "iterative", "oracle"], [menu, QA], episodes=10)
    assert [(row.environment == menu.label, row.agent) for row in found.rows] == [
        (True, "random"),
        (True, "oracle"),
        (False, "random"),
        (False, "iterative"),
        (False, "oracle"),
    ]
    returns = [row.metrics["return"].mean for row in found.rows]
    assert returns[1] == 1.0 > returns[0] + 0.5
    with pytest.raises(ConfigurationError, match=r"no agent that was named can play .*Menu"):
        evaluate(["iterative"], [menu], episodes=1)
