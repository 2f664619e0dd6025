"""Policies in an evaluation: many episodes at a time, the same results as one by one."""

import pytest

from seekgym.agents import IterativeAgent
from seekgym.agents.policy import AgentPolicy, Policy
from seekgym.agents.rollouts import Reply, replay
from seekgym.corpora import ConfigurationError
from seekgym.leaderboard import EnvironmentChoice, evaluate

ANSWER = Reply({"name": "answer", "arguments": {"text": "yes"}})
QA = EnvironmentChoice("seekgym/QA-v0", {"max_turns": 4})


class Renamed(AgentPolicy):
    def __init__(self):
        super().__init__(IterativeAgent)
        self.name = "a policy"


def test_a_policy_is_scored_as_an_agent_is():
    told = []
    found = evaluate(
        ["iterative"],
        [QA],
        policies=[Renamed()],
        episodes=30,
        on_progress=lambda *done: told.append(done),
    )
    agent, policy = found.rows
    assert (policy.agent, policy.sees_gold, policy.episodes) == ("a policy", False, 30)
    assert policy.metrics == agent.metrics
    assert policy.kinds == agent.kinds
    assert told[-1] == (60, 60)
    tasks = [
        [e.trajectory.task_id for e in found.episodes if e.agent == row.agent] for row in found.rows
    ]
    assert tasks[0] == tasks[1]
    assert replay(found.episodes[-1].trajectory) == []


class Flaky(Policy):
    """Loses every episode at its first attempt, and one for ever."""

    name = "flaky"

    def __init__(self):
        self.seen = []

    def play(self, episodes):
        waiting = list(episodes)
        for episode in reversed(waiting):  # out of order
            first = episode.plan.id not in self.seen
            self.seen.append(episode.plan.id)
            failure = "lost" if first or episode.plan.id == "3" else None
            while failure is None and episode.send(ANSWER) is not None:
                pass
            yield episode.finish(failure=failure)


def test_an_episode_that_a_policy_lost_is_played_again():
    policy = Flaky()
    (row,) = evaluate([], [QA], policies=[policy], episodes=5).rows
    assert (row.episodes, row.failed) == (4, 1)
    assert policy.seen.count("3") == 3
    assert policy.seen.count("0") == 2


def test_two_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match="two agents are called 'iterative'"):
        evaluate(["iterative"], [QA], policies=[AgentPolicy(IterativeAgent)], episodes=1)


def test_policies_alone_do_not_mind_jobs():
    (row,) = evaluate([], [QA], policies=[Renamed()], episodes=2, jobs=3).rows
    assert row.episodes == 2
