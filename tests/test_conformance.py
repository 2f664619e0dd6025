"""Every check of the public kit, on every registered environment."""

import gymnasium as gym
import pytest
from registered import every_environment

from seekgym.agents import RandomAgent
from seekgym.agents.rollouts import play, read_trajectories, replay, write_trajectories
from seekgym.testing import CHECKS, Case, run_check


@pytest.mark.parametrize("environment", every_environment())
def test_a_file_says_all_that_is_needed_to_play_again(environment, tmp_path):
    env = gym.make(environment.id)
    write_trajectories([play(env, RandomAgent(env), seed=3)], tmp_path / "t.jsonl")
    [again] = read_trajectories(tmp_path / "t.jsonl")
    assert replay(again) == []


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("environment", every_environment())
def test_environment_keeps_the_contract(environment, check):
    run_check(check, Case.of_id(environment.id))
