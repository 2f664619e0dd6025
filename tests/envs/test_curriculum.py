import gymnasium as gym
import pytest

from seekgym.agents import OracleAgent
from seekgym.corpora import ConfigurationError
from seekgym.envs.wrappers import Curriculum

STAGES = [{"hops": 1}, {"hops": 2}]


def make(**arguments):
    return Curriculum(gym.make("seekgym/PhantomEasy-v0", questions=40), STAGES, **arguments)


def episode(env, *, is_won):
    observation, info = env.reset()
    agent = OracleAgent(env)
    agent.reset(observation, info)
    hops, stage, is_over = env.unwrapped.task.hops, info["stage"], False
    while not is_over:
        action = agent.act(observation, info) if is_won else {"name": "answer", "arguments": {}}
        observation, _, terminated, truncated, info = env.step(action)
        is_over = terminated or truncated
    assert info["stage"] == stage
    return hops, stage


def test_stages_change_by_measured_success():
    env = make(window=4, threshold=0.75)
    env.reset(seed=0)
    for is_won in (True, False, False, True):
        assert episode(env, is_won=is_won) == (1, 0)
    for _ in range(2):  # two of the last four, then three of the last four
        assert episode(env, is_won=True) == (1, 0)
    assert env.stage == 1
    for _ in range(6):
        assert episode(env, is_won=True) == (2, 1)
    assert env.stage == 1


def test_options_come_on_top_of_the_stage():
    env = make()
    env.reset(seed=0, options={"kind": "attribute"})
    assert (env.unwrapped.task.kind, env.unwrapped.task.hops) == ("attribute", 1)


def test_it_is_part_of_the_spec():
    env = make(window=3)
    assert gym.make(env.spec).reset(seed=0)[1]["stage"] == 0


@pytest.mark.parametrize(
    "arguments", [{"stages": []}, {"stages": [1]}, {"threshold": 0}, {"window": 0}]
)
def test_bad_arguments_are_named(arguments):
    env = gym.make("seekgym/PhantomEasy-v0", questions=40)
    with pytest.raises(ConfigurationError, match=next(iter(arguments))):
        Curriculum(env, **{"stages": STAGES, **arguments})
