import json
import re

import numpy as np
import pytest

from seekgym.agents import AGENTS
from seekgym.corpora import ConfigurationError
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
    for trajectory in evaluation.trajectories:
        by_agent.setdefault(trajectory.agent, []).append(trajectory.task_id)
    assert set(by_agent) == set(AGENTS)
    first = by_agent["oracle"]
    assert all(tasks == first for tasks in by_agent.values())
    assert len(set(first)) == 30


def test_the_result_does_not_depend_on_the_number_of_processes(evaluation):
    again = evaluate(list(AGENTS), [QA], episodes=30, seed=0, jobs=2)
    assert again.rows == evaluation.rows
    assert [t.to_json() for t in again.trajectories] == [
        t.to_json() for t in evaluation.trajectories
    ]


def test_more_episodes_than_tasks_start_again():
    found = evaluate(["closed-book"], [QA], episodes=130, seed=1)
    tasks = [trajectory.task_id for trajectory in found.trajectories]
    assert len(set(tasks[:100])) == 100
    assert tasks[100:] == tasks[:30]
    assert len({trajectory.seed for trajectory in found.trajectories}) == 130


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
