"""The leader among scripted searchers is the leader of the same game."""

import gymnasium as gym
import pytest

from seekgym.agents.teams import ReadingAnswerer, ReadingSearcher, Team, play_team
from seekgym.corpora import ConfigurationError
from seekgym.envs import team
from seekgym.envs.team.leader import TeamLeaderEnv

WORLD = "phantom:people=200,hops=(1, 2)"


def test_its_searchers_report_what_those_of_the_parallel_game_report():
    read = []

    class Asks(team.RolePolicy):
        role = "leader"

        def act(self, observation, info):
            if info["round"]:
                read.append(observation)
                return {"name": "hand_over", "arguments": {}}
            subject = self.env.task.proof[0].query
            asked = {"searcher_0": observation, "searcher_1": subject}
            return {"name": "assign", "arguments": asked}

    parallel = team.parallel_env(WORLD, searchers=2)
    leader = TeamLeaderEnv(WORLD, searchers=2)
    players = Team("asks", Asks, ReadingSearcher, ReadingAnswerer)
    for task in leader.tasks[:20]:
        play_team(parallel, players, options={"task": task.id})
        question, _ = leader.reset(options={"task": task.id})
        asked = {"searcher_0": question, "searcher_1": task.proof[0].query}
        observation, *_ = leader.step({"name": "assign", "arguments": asked})
        assert read[-1] == f"{observation}\n\nYou may assign 2 more times."


def test_it_is_made_as_documented():
    env = gym.make("seekgym/TeamLeader-v0", teammates="scripted", world=WORLD)
    env.reset(seed=0)
    task = env.unwrapped.task
    asked = {"searcher_0": task.proof[0].query, "searcher_2": task.proof[0].query}
    observation, *_, info = env.step({"name": "assign", "arguments": asked})
    assert info["documents"].count(task.proof[0].document) == 1
    assert "(the same as searcher_0)" in observation
    *_, info = env.step({"name": "assign", "arguments": {"searcher_1": " "}})
    assert info["error"] == "no_assignment"
    verbatim = TeamLeaderEnv(WORLD, teammates="verbatim")
    assert verbatim.env_hash != TeamLeaderEnv(WORLD).env_hash


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"teammates": "scriptet"}, "did you mean 'scripted'"),
        ({"searchers": 0}, "searchers must be"),
        ({"world": "knowledge:entities=600"}, "only searches"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        TeamLeaderEnv(**{"world": WORLD, **arguments})
