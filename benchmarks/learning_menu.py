"""Learn menus with four algorithms and three seeds; write docs/learning_menu.json and .png.

Usage: OMP_NUM_THREADS=1 python benchmarks/learning_menu.py [--minutes 5] [--jobs 2]

Every run is evaluated on a test world of its own, with no name of the training world; the rivals
of the same run are chance and two oracles, one of text and one of the menu.
"""

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Annotated

import gymnasium as gym
import numpy as np
import torch
import typer
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import seekgym
from seekgym.agents import OracleAgent, RandomAgent
from seekgym.agents.rollouts import play
from seekgym.agents.training.run import RunFolder
from seekgym.agents.training.sb3 import ALGORITHMS, SB3Settings, make_numeric, play_returns, train

ENV = "seekgym/PhantomMenu-v0"
TEXT = {"people": 1_000, "hops": (1, 2), "relations": "easy", "max_turns": 8}
SEEDS = (0, 1, 2)
EPISODES = 200
DOCS = Path(__file__).parent.parent / "docs"


def main(
    minutes: float = 5.0,
    algorithms: Annotated[list[str] | None, typer.Option()] = None,
    jobs: int = 2,
    out: Path = DOCS,
) -> None:
    """Train, print and write the figures."""
    rivals = {seed: measure_rivals(seed) for seed in SEEDS}
    names = algorithms or list(ALGORITHMS)
    runs = product(names, SEEDS, [minutes])
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        learned = list(pool.map(learn, *zip(*runs, strict=True)))
    count = len(SEEDS)
    found = {name: learned[i * count :][:count] for i, name in enumerate(names)}
    oracle = min(rival["text_oracle"] for rival in rivals.values())
    for name, runs in found.items():
        returns = [run["return"] for run in runs]
        print(
            f"{name}: {np.mean(returns):.3f} ({min(returns):.3f} to {max(returns):.3f}), "
            f"{min(returns) / oracle:.2f} of the oracle at worst"
        )
    for name in next(iter(rivals.values())):
        print(f"{name}: {np.mean([rival[name] for rival in rivals.values()]):.3f}")
    report = {
        "command": "python " + " ".join(sys.argv),
        "version": seekgym.__version__,
        "load": round(os.getloadavg()[0], 1),
        "minutes": minutes,
        "episodes": EPISODES,
        "rivals": rivals,
        "runs": found,
    }
    (out / "learning_menu.json").write_text(json.dumps(report, indent=1) + "\n")
    draw(found, np.mean([r["random"] for r in rivals.values()]), oracle, out / "learning_menu.png")


def test_arguments(seed: int) -> dict[str, object]:
    """Return what the test world of a seed is made with."""
    return {"split": "test", "world_seed": 100 + seed}


def measure_rivals(seed: int) -> dict[str, float]:
    """Return what chance and the oracles earn on a test world."""
    menu = gym.make(ENV, **test_arguments(seed))
    text = gym.make("seekgym/Phantom-v0", **TEXT, **test_arguments(seed))
    players = {
        "random": RandomAgent(menu),
        "menu_oracle": OracleAgent(menu),
        "text_oracle": OracleAgent(text),
    }
    return {
        name: float(np.mean([play(agent.env, agent, seed=n).total_reward for n in range(EPISODES)]))
        for name, agent in players.items()
    }


def learn(algorithm: str, seed: int, minutes: float) -> dict[str, object]:
    """Train once; return the return on the test world and the curve."""
    torch.set_num_threads(1)
    settings = SB3Settings(ENV, algorithm, minutes, seed, test_args=test_arguments(seed))
    with tempfile.TemporaryDirectory() as folder:
        policy = train(settings, f"{folder}/run")
        run = RunFolder.begin(
            f"{folder}/run",
            json.loads(Path(folder, "run", "config.json").read_text()),
            resume=True,
        )
        records = run.records()
        run.close()
    env = make_numeric(ENV, test_arguments(seed))
    earned = float(np.mean(play_returns(policy, env, EPISODES, seed=1)))
    curve = [(r["seconds"], r["test_return"]) for r in records if "test_return" in r]
    print(f"{algorithm}, seed {seed}: {earned:.3f} after {records[-1]['step']} steps", flush=True)
    return {"seed": seed, "return": earned, "steps": records[-1]["step"], "curve": curve}


def draw(
    found: dict[str, Sequence[dict[str, object]]], random: float, oracle: float, path: Path
) -> None:
    """Draw the mean and the range over seeds of each algorithm, over seconds."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, runs in found.items():
        end = min(run["curve"][-1][0] for run in runs)
        grid = np.linspace(0, end, 60)
        values = np.array([np.interp(grid, *zip(*run["curve"], strict=True)) for run in runs])
        (line,) = axes.plot(grid, values.mean(0), label=name)
        axes.fill_between(grid, values.min(0), values.max(0), alpha=0.2, color=line.get_color())
    axes.axhline(oracle, color="grey", linestyle="--", label="oracle")
    axes.axhline(random, color="grey", linestyle=":", label="random")
    axes.set(xlabel="seconds", ylabel="return on a test world", title=f"{ENV}, three seeds")
    axes.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    typer.run(main)
