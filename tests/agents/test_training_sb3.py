"""Learning to choose from menus: it works, it can be killed and goes on, and its policy plays."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from seekgym.agents.training.choosing import Scorer
from seekgym.agents.training.playing import ChoosingPlayer
from seekgym.agents.training.sb3 import (
    SB3Settings,
    load_policy,
    make_numeric,
    play_returns,
    train,
)
from seekgym.corpora import ConfigurationError
from seekgym.envs.wrappers import Features
from seekgym.envs.wrappers.features import CHOICE_FEATURES, EPISODE_FEATURES
from seekgym.leaderboard import EnvironmentChoice, evaluate

PROBE = {"people": 50, "questions": 40, "max_turns": 4}
SECONDS_TO_LEARN = 90
STEPS = 7_000


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def settings(**changes):
    return replace(SB3Settings(env_args=PROBE, minutes=0.02, evaluate_episodes=5), **changes)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    known = SB3Settings(env_args=PROBE, max_steps=STEPS, minutes=10, evaluate_episodes=20)
    return train(known, folder), folder


def test_a_small_menu_is_learned(learned):
    policy, _ = learned
    env = make_numeric("seekgym/PhantomMenu-v0", {**PROBE, "split": "test"})
    assert np.mean(play_returns(policy, env, 40)) >= 0.8


def test_a_run_leaves_what_it_should(learned):
    _, folder = learned
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert names == ["checkpoints", "config.json", "curves.html", "curves.png", "log.jsonl"]
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert records[0]["test_return"] < 0.5 < records[-1]["test_return"]
    assert [r["step"] for r in records] == sorted(r["step"] for r in records)
    assert "entropy_loss" in records[-1]


def test_the_saved_policy_is_the_learned_one_and_plays_in_the_bench(learned):
    policy, folder = learned
    again = load_policy(folder)
    env = make_numeric("seekgym/PhantomMenu-v0", PROBE)
    assert play_returns(policy, env, 10) == play_returns(again, env, 10)
    found = evaluate(
        ["random"],
        [EnvironmentChoice("seekgym/PhantomMenu-v0", PROBE)],
        policies=[ChoosingPlayer(again, "mine")],
        episodes=20,
    )
    returns = {row.agent: row.metrics["return"].mean for row in found.rows}
    assert returns["mine"] > 0.7 > 0.25 > returns["random"]


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "dqn"])
def test_other_algorithms_run_without_masks(algorithm, tmp_path):
    policy = train(settings(algorithm=algorithm, max_steps=700, minutes=5), tmp_path / "run")
    assert policy.model.num_timesteps >= 700
    assert load_policy(tmp_path / "run").algorithm == algorithm


@pytest.mark.parametrize("env_id", ["seekgym/QA-v0", "CartPole-v1"])
def test_another_environment_trains_by_its_id(env_id, tmp_path):
    algorithm = "maskable-ppo" if "QA" in env_id else "ppo"
    other = SB3Settings(
        env_id, algorithm, test_args={}, max_steps=600, envs=2, minutes=5, evaluate_episodes=2
    )
    assert train(other, tmp_path / "run").model.num_timesteps >= 600


def test_a_policy_of_query_refinement_plays_in_the_bench(tmp_path):
    env_id = "seekgym/QueryRefinement-v0"
    few = SB3Settings(env_id, max_steps=600, envs=2, minutes=5, evaluate_episodes=2)
    player = ChoosingPlayer(train(few, tmp_path / "run"), "mine")
    found = evaluate(["random"], [EnvironmentChoice(env_id)], policies=[player], episodes=10)
    returns = {row.agent: row.metrics["return"].mean for row in found.rows}
    assert -1 <= returns["random"] < returns["mine"] <= 1
    with pytest.raises(ConfigurationError, match=r"learned from observations Box.*252"):
        evaluate([], [EnvironmentChoice("seekgym/PhantomMenu-v0")], policies=[player], episodes=1)


def test_damaged_files_and_environments_without_masks_are_named(learned, tmp_path):
    _, folder = learned
    shutil.copytree(folder, tmp_path / "run")
    for model in (tmp_path / "run").rglob("model.zip"):
        model.write_bytes(b"no zip")
    with pytest.raises(ConfigurationError, match=r"step-\d+ cannot be read .* remove that folder"):
        load_policy(tmp_path / "run")
    with pytest.raises(ConfigurationError, match="CartPole-v1 has none; take ppo"):
        train(SB3Settings("CartPole-v1", test_args={}), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_choice_is_scored_alike_wherever_it_stands():
    scorer = Scorer(6)
    shared = torch.rand(1, len(EPISODE_FEATURES))
    rows = torch.rand(6, len(CHOICE_FEATURES))
    rows[4:] = 0
    order = [3, 1, 5, 0, 2, 4]
    one, other = (
        scorer(torch.cat((shared, rows[places].reshape(1, -1)), dim=1))
        for places in (range(6), order)
    )
    assert torch.allclose(one[0][:, order], other[0])
    assert torch.allclose(one[1], other[1])


CHILD = """
import json, sys
import torch
from seekgym.agents.training.sb3 import SB3Settings, train

torch.set_num_threads(1)
settings = SB3Settings(
    env_args=json.loads(sys.argv[2]), envs=2, max_steps=int(sys.argv[3]), minutes=10,
    checkpoint_seconds=0.1, log_seconds=0.1, evaluate_episodes=2,
)
policy = train(settings, sys.argv[1], resume=True)
print(policy.model.num_timesteps)
"""


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-P", "-c", CHILD, str(folder), json.dumps(PROBE), "2500"]
    child = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        deadline = time.monotonic() + SECONDS_TO_LEARN
        while not list(folder.glob("checkpoints/step-*")):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    saved = max(int(path.name[5:]) for path in folder.glob("checkpoints/step-*"))
    assert 0 < saved < 2500
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert int(done.stdout) >= 2500
    steps = [json.loads(line)["step"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert steps.count(0) == 1  # it did not begin anew
    assert (folder / "checkpoints" / f"step-{int(done.stdout):08}").exists()


def test_wrong_settings_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="did you mean 'dqn'"):
        train(settings(algorithm="dqm"), tmp_path / "run")
    with pytest.raises(ConfigurationError, match="minutes must be a finite number above 0"):
        train(settings(minutes=0), tmp_path / "run")
    with pytest.raises(ConfigurationError, match="a Box and a Discrete are needed"):
        train(settings(env="Pendulum-v1", env_args={}, test_args={}), tmp_path / "run")
    with pytest.raises(ConfigurationError, match="holds no policy of train sb3"):
        load_policy(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_text_is_put_on_a_menu_and_numbers_are_left():
    assert isinstance(make_numeric("seekgym/QA-v0", {}), Features)
    assert not isinstance(make_numeric("CartPole-v1", {}), Features)
    assert isinstance(gym.make("seekgym/QAMenu-v0"), Features)
