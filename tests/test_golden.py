"""One readable transcript for each id: a change of any episode shows here.

``make golden`` writes them anew; a change that can alter an episode makes a new version of the
environment.
"""

from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.spaces import Discrete
from registered import every_environment

from seekgym.agents import OracleAgent
from seekgym.envs.wrappers.features import CHOICE_FEATURES, EPISODE_FEATURES
from seekgym.registration import ENVIRONMENTS

FOLDER = Path(__file__).parent / "golden"


def menu_transcript(env_id, arguments):
    """Return the menus and what was chosen; of the numbers, those of the choice."""
    env = gym.make(env_id, **arguments)
    lines = []
    for seed in range(2):
        observation, info = env.reset(seed=seed)
        agent = OracleAgent(env)
        agent.reset(observation, info)
        lines += [f"=== {env_id}, seed {seed}, task {info['task_id']} ===", info["text"]]
        script, is_over, rewards = [len(env.get_wrapper_attr("labels")())], False, []
        while not is_over:
            place = script.pop(0) if script else agent.act(observation, info)
            lines.append(f"[{place}] {shown_features(observation, place)}")
            observation, reward, terminated, truncated, info = env.step(place)
            lines.append(info["text"])
            rewards.append(reward)
            is_over = terminated or truncated
        lines.append(f"rewards: {rewards}")
    return "\n\n".join(lines) + "\n"


def shown_features(observation, place):
    start = len(EPISODE_FEATURES) + place * len(CHOICE_FEATURES)
    names = (*EPISODE_FEATURES, *CHOICE_FEATURES)
    values = [*observation[: len(EPISODE_FEATURES)], *observation[start:][: len(CHOICE_FEATURES)]]
    return " ".join(f"{n}={v:.2f}" for n, v in zip(names, values, strict=True) if v)


def transcript(env_id, arguments):
    env = gym.make(env_id, render_mode="ansi", **arguments)
    lines = []
    for seed in range(2):
        observation, info = env.reset(seed=seed)
        agent = OracleAgent(env)
        agent.reset(observation, info)
        lines.append(f"=== {env_id}, seed {seed}, task {info['task_id']} ===")
        if isinstance(env.action_space, Discrete):  # what is legal later, and what never is
            script = [5, "look"]
        else:
            script = [{"name": "search", "arguments": {"query": observation}}, {"name": "look"}]
        is_over, rewards = False, []
        while not is_over:
            action = script.pop(0) if script else agent.act(observation, info)
            observation, reward, terminated, truncated, info = env.step(action)
            rewards.append(round(reward, 12))  # logarithms differ in their last bits
            is_over = terminated or truncated
        lines += [env.render(), f"rewards: {rewards}"]
    return "\n\n".join(lines) + "\n"


@pytest.mark.parametrize("environment", every_environment())
def test_transcript_is_the_golden_one(environment, request):
    path = FOLDER / (environment.id.replace("/", "-") + ".txt")
    write = menu_transcript if environment.is_menu else transcript
    found = write(environment.id, environment.golden)
    if request.config.getoption("--write-golden"):
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"no golden transcript of {environment.id}; run make golden"
    assert found == path.read_text(encoding="utf-8")


def test_no_golden_transcript_is_left_over():
    expected = {environment.id.replace("/", "-") + ".txt" for environment in ENVIRONMENTS}
    assert {path.name for path in FOLDER.iterdir()} == expected
