"""What chance, a teacher, a learner and the oracle reach in query refinement, on held-out tasks.

    python benchmarks/query_refinement.py --seconds 60 --seeds 3

The learner is MaskablePPO of sb3-contrib (pip install stable-baselines3 sb3-contrib), trained on
the training share of each world for so many seconds; everybody plays the same held-out tasks.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

import seekgym  # noqa: F401 - registers the environments
from seekgym.agents import Agent, RandomAgent
from seekgym.agents.refinement import RefinementOracle, RocchioTeacher

ENV = "seekgym/QueryRefinement-v0"
WORLDS = ("qa:hotpotqa-100", "phantom:people=1000,hops=(1, 2),questions=100")


class Clock(BaseCallback):
    """Ends a training after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.monotonic() + seconds

    def _on_step(self) -> bool:
        return time.monotonic() < self._end


def play(env: gym.Env[Any, Any], begin: Callable[..., None], act: Callable[..., Any]) -> list[Any]:
    """Play every task once; return return, first and last nDCG of each episode."""
    played = []
    for task in env.unwrapped.tasks:
        observation, info = env.reset(seed=0, options={"task": task.id})
        begin(observation, info)
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, info = env.step(act(observation, info))
            total += float(reward)
            is_over = terminated or truncated
        played.append((total, info["first_ndcg"], info["ndcg"]))
    return played


def learn(world: str, seconds: float, seed: int) -> tuple[MaskablePPO, int]:
    """Train on the training share of a world."""
    env = gym.make(ENV, world=world, split="train")
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=512, batch_size=128, gamma=1.0, ent_coef=0.01, seed=seed
    )
    model.learn(10_000_000, callback=Clock(seconds))
    return model, model.num_timesteps


def measure(world: str, seconds: float, seeds: int) -> list[dict[str, Any]]:
    """Return a row for each player."""
    env = gym.make(ENV, world=world, split="test")
    rows = []
    agents: tuple[type[Agent], ...] = (RandomAgent, RocchioTeacher, RefinementOracle)
    for agent_class in agents:
        agent = agent_class(env)
        rows.append(row(world, agent.name, play(env, agent.reset, agent.act)))
    for seed in range(seeds):
        model, steps = learn(world, seconds, seed)

        def act(observation: Any, info: Any, model: MaskablePPO = model) -> int:
            masks = info["action_mask"].astype(bool)
            return int(model.predict(observation, action_masks=masks, deterministic=True)[0])

        found = row(world, f"MaskablePPO, seed {seed}", play(env, lambda *_: None, act))
        rows.append(found | {"steps": steps})
    return rows


def row(world: str, name: str, played: list[Any]) -> dict[str, Any]:
    """Print and return the means."""
    total, first, last = (float(value) for value in np.mean(played, axis=0))
    print(f"{world:34} {name:22} return {total:6.3f}  nDCG {first:.3f} -> {last:.3f}", flush=True)
    return {"world": world, "player": name, "tasks": len(played), "return": total,
            "first_ndcg": first, "ndcg": last}  # fmt: skip


def main() -> None:
    """Measure every world and print the rows as JSON too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--world", action="append")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        found
        for world in options.world or WORLDS
        for found in measure(world, options.seconds, options.seeds)
    ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
