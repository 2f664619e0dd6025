import json
from dataclasses import replace

import gymnasium as gym
import pytest

from seekgym.agents import IterativeAgent, RandomAgent
from seekgym.agents.rollouts import play, read_trajectories, replay, write_trajectories
from seekgym.corpora import ConfigurationError, CorpusError
from seekgym.envs import F1, QAEnv
from seekgym.envs.wrappers import TextProtocol


@pytest.fixture(scope="module")
def trajectory():
    env = gym.make("seekgym/QA-v0", max_turns=6)
    return play(env, IterativeAgent(env), seed=3)


def test_a_trajectory_survives_its_file_and_plays_again(trajectory, tmp_path):
    write_trajectories([trajectory, trajectory], tmp_path / "t.jsonl")
    again = list(read_trajectories(tmp_path / "t.jsonl"))
    assert len(again) == 2
    assert again[0].to_json() == trajectory.to_json()
    assert again[0].arguments == {"max_turns": 6}
    assert replay(again[0]) == []


def test_a_changed_trajectory_is_found_out(trajectory):
    first = trajectory.turns[0]
    changed = {
        "env_hash is": replace(trajectory, env_hash="0"),
        "the question differs": replace(trajectory, question="?"),
        "turn 1: the observation differs": replace(
            trajectory, turns=(replace(first, observation="x"), *trajectory.turns[1:])
        ),
        "turn 1: the reward is 0.0, was 1.0": replace(
            trajectory, turns=(replace(first, reward=1.0), *trajectory.turns[1:])
        ),
        "the episode did not end": replace(trajectory, turns=trajectory.turns[:1]),
        "the episode ended before turn": replace(trajectory, turns=trajectory.turns * 2),
    }
    for words, wrong in changed.items():
        assert any(words in difference for difference in replay(wrong)), words


def test_other_arguments_are_found_out(trajectory):
    wrong = replace(trajectory, arguments={"max_turns": 6, "k": 1})
    assert any("env_hash" in difference for difference in replay(wrong))


def test_the_random_agent_depends_on_the_task_alone():
    env = gym.make("seekgym/QA-v0")
    task = env.unwrapped.tasks[5].id
    first = play(env, RandomAgent(env), seed=1, options={"task": task})
    agent = RandomAgent(env)
    play(env, agent, seed=2)
    second = play(env, agent, seed=1, options={"task": task})
    assert first.turns == second.turns


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"turns": None}, "line 1, field 'turns'"),
        ({"turns": [1]}, "line 1, field 'turns'"),
        ({"task_id": 3.5}, "line 1, field 'task_id'"),
        ({"surplus": 1}, "line 1: not a trajectory"),
        ({"turns": [{"action": "x"}]}, "line 1, field 'turns'"),
        ({"turns": [{"observation": "", "reward": "1", "reward_terms": {}}]}, "field 'turns'"),
        ({"outcome": None}, "line 1, field 'outcome'"),
        ({"outcome": []}, "line 1, field 'outcome'"),
        ({"outcome": {"gold_answers": [1]}}, "gold_answers must be a list of texts"),
        ({"arguments": 3}, "line 1, field 'arguments'"),
    ],
)
def test_bad_trajectories_are_named(trajectory, write, change, place):
    row = json.loads(trajectory.to_json()) | change
    with pytest.raises(CorpusError, match=place):
        list(read_trajectories(write("t.jsonl", [row])))


class Says(RandomAgent):
    """Answers with what it was given."""

    name = "says"
    text = None

    def act(self, observation, info):
        return self.text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), object(), {1, 2}])
def test_an_action_that_json_lacks_is_written_as_text(value, tmp_path):
    env = gym.make("seekgym/QA-v0", max_turns=2)
    agent = Says(env)
    agent.text = {"name": "search", "arguments": {"query": value}}
    write_trajectories([play(env, agent, seed=0)], tmp_path / "t.jsonl")
    [again] = read_trajectories(tmp_path / "t.jsonl")
    assert len(again.turns) == 2


def test_a_trajectory_in_text_plays_again_in_its_wrapper(tmp_path):
    env = TextProtocol(gym.make("seekgym/QA-v0", max_turns=3), "search-r1")
    agent = Says(env)
    agent.text = "<search>Lisbon</search>"
    write_trajectories([play(env, agent, seed=0)], tmp_path / "t.jsonl")
    [again] = read_trajectories(tmp_path / "t.jsonl")
    assert replay(again) == []


def test_an_episode_that_a_wrapper_ends_is_recorded():
    env = gym.make("seekgym/QA-v0", max_episode_steps=2)
    agent = Says(env)
    agent.text = {"name": "search", "arguments": {"query": "x"}}
    trajectory = play(env, agent, seed=0)
    assert len(trajectory.turns) == 2
    assert trajectory.outcome["exact_match"] is None


def test_what_cannot_be_made_again_is_said(tmp_path):
    env = gym.make("seekgym/QA-v0", rewards=[F1()])
    trajectory = play(env, RandomAgent(env), seed=0)
    assert replay(trajectory) == []
    write_trajectories([trajectory], tmp_path / "t.jsonl")
    [again] = read_trajectories(tmp_path / "t.jsonl")
    with pytest.raises(ConfigurationError, match="pass env="):
        replay(again)
    assert replay(again, env) == []
    bare = QAEnv()
    with pytest.raises(ConfigurationError, match="not registered"):
        replay(play(bare, RandomAgent(bare), seed=0))
