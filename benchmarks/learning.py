"""What is learned: SFT, GRPO from there, without the mask, by other estimators, and elsewhere.

Run: python benchmarks/learning.py                   everything, three seeds (hours on two cores)
     python benchmarks/learning.py --seeds 0 --stages sft grpo
     python benchmarks/learning.py --draw            docs/learning.json and .png from runs/learning

Each run is a process with one thread, two at a time, kept in runs/learning/seed-N/STAGE; what is
done is not done again, what was cut off goes on. Evaluation is on held-out universes: other seeds
and other names than those of training. Rivals in the same figures: the model before training, the
estimators against one another on the same budget, GRPO with its mask against GRPO without,
distillation from the tutor against GRPO.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
RUNS = ROOT / "runs" / "learning"
ENVIRONMENT = "seekgym/PhantomShort-v0"


class Stage(NamedTuple):
    """One kind of run.

    Attributes:
        method: ``sft`` or ``grpo``.
        minutes: How long it trains.
        settings: What is set beside the defaults.
        begins_with: The stage whose model it goes on from; a new model if None.
    """

    method: str
    minutes: float
    settings: Mapping[str, Any]
    begins_with: str | None = None


TUTOR = {"teacher": "tutor", "weight": 1.0, "weight_end": 1.0}
# sft ends once 60% are right, which is enough to begin with; long-sft is what SFT can reach.
STAGES = {
    "sft": Stage("sft", 12, {"target": 0.6, "evaluate_minutes": 0.5}),
    "long-sft": Stage("sft", 15, {}),
    "grpo": Stage("grpo", 30, {}, "sft"),
    "short-grpo": Stage("grpo", 2, {}, "sft"),
    "short-unmasked": Stage("grpo", 2, {"masks_observations": False}, "sft"),
    "short-rloo": Stage("grpo", 2, {"estimator": "rloo"}, "sft"),
    "short-stratified": Stage("grpo", 2, {"estimator": "stratified"}, "sft"),
    "short-distilled": Stage("grpo", 2, {"distillation": TUTOR}, "sft"),
}
TRANSFER = {
    "seekgym/PhantomShort-v0": {"hops": (3, 3), "questions": 200},
    "seekgym/Phantom-50-v0": {"hops": (1, 2), "hit_sentences": 1, "k": 1},
    "seekgym/KnowledgeGraphEasy-v0": {},
    "seekgym/QA-v0": {"hit_sentences": 1, "k": 1},
}
TEST_WORLDS = (1, 2, 3, 4)
EPISODES = 150  # of each world
COMMON = {"evaluate_minutes": 2.0, "evaluation_episodes": 300}


def folder(seed: int, stage: str) -> Path:
    """Return where a run is kept."""
    return RUNS / f"seed-{seed}" / stage


def run_stage(seed: int, stage: str) -> None:
    """Train one stage, or go on with it, and then test what came out on 500 questions."""
    import torch
    from transformers.utils import logging

    from seekgym.agents.training.distillation import Distillation
    from seekgym.agents.training.grpo import GRPO, GRPOSettings
    from seekgym.agents.training.run import RunFolder
    from seekgym.agents.training.sft import SFT, SFTSettings

    torch.set_num_threads(1)
    logging.disable_progress_bar()
    method, minutes, changes, begins_with = STAGES[stage]
    kind, settings_kind = (SFT, SFTSettings) if method == "sft" else (GRPO, GRPOSettings)
    given: dict[str, Any] = {"minutes": float(minutes), "seed": seed, **COMMON, **changes}
    if begins_with is not None:
        given["model"] = str(folder(seed, begins_with))
    if "distillation" in given:
        given["distillation"] = Distillation(**given["distillation"])
    settings = settings_kind(environment=ENVIRONMENT, **given)
    run = RunFolder.begin(folder(seed, stage), settings.record, resume=True)
    kind(settings, run).train()
    test(seed, stage)


def test(seed: int, stage: str) -> None:
    """Play 600 questions of four held-out universes, greedily and drawn, and other environments.

    None of them was looked at in training, not even to stop it.
    """
    from seekgym.agents.llm.local import LocalPolicy
    from seekgym.agents.training.evaluation import evaluate
    from seekgym.agents.training.worlds import Worlds

    found: dict[str, Any] = {}
    for name, temperature in (("greedy", 0.0), ("drawn", 1.0)):
        policy = LocalPolicy.from_pretrained(
            str(folder(seed, stage)), temperature=temperature, batch_size=64
        )
        worlds = [Worlds(ENVIRONMENT, seed=seed).held_out(number) for number in TEST_WORLDS]
        records = [evaluate(policy, each, episodes=EPISODES, seed=1).record for each in worlds]
        found[name] = {
            figure: statistics.mean([record[figure] for record in records])
            for figure in records[0]
            if all(record.get(figure) is not None for record in records)
        }
        if name == "greedy" and not stage.startswith("short-"):
            for other, arguments in TRANSFER.items():
                apart = Worlds(other, arguments, seed=seed).held_out(1)
                label = f"{other} {json.dumps(arguments)}"
                found[label] = evaluate(policy, apart, episodes=EPISODES, seed=1).record
    (folder(seed, stage) / "test.json").write_text(json.dumps(found, indent=1))


def run_all(arguments: argparse.Namespace) -> None:
    """Run every stage of every seed, two at a time, each after what it begins with."""
    waiting = [
        (seed, stage)
        for stage in arguments.stages
        for seed in arguments.seeds
        if not (folder(seed, stage) / "test.json").exists()
    ]
    running: dict[tuple[int, str], subprocess.Popen[bytes]] = {}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    while waiting or running:
        for job in list(waiting):
            before = STAGES[job[1]].begins_with
            ready = before is None or (folder(job[0], before) / "test.json").exists()
            if ready and len(running) < arguments.jobs:
                waiting.remove(job)
                command = [sys.executable, __file__, "--run", str(job[0]), job[1]]
                running[job] = subprocess.Popen(command, env=environment)
                print(f"seed {job[0]}, {job[1]}: {STAGES[job[1]].minutes} minutes", flush=True)
        time.sleep(1)
        for job, process in list(running.items()):
            if process.poll() is not None:
                del running[job]
                print(f"seed {job[0]}, {job[1]}: exit code {process.returncode}", flush=True)
                if process.returncode:
                    waiting = [each for each in waiting if each[0] != job[0]]


def collect() -> dict[str, Any]:
    """Return mean and range over seeds of what was tested, and the curves."""
    figures: dict[str, Any] = {"environment": ENVIRONMENT, "stages": {}}
    for stage in STAGES:
        runs = []
        for place in sorted(RUNS.glob("seed-*")):
            if (place / stage / "test.json").exists():
                runs.append((int(place.name.partition("-")[2]), place / stage))
        if not runs:
            continue
        tests = [json.loads((path / "test.json").read_text()) for _, path in runs]
        rows: dict[str, Any] = {}
        for name in tests[0]:
            rows[name] = {
                figure: summary([each[name].get(figure) for each in tests if name in each])
                for figure in tests[0][name]
            }
        config = json.loads((runs[0][1] / "config.json").read_text())
        figures["stages"][stage] = {
            "seeds": [seed for seed, _ in runs],
            "minutes": config["minutes"],
            "test": rows,
            "curves": [curve(path) for _, path in runs],
        }
    return figures


def summary(values: list[float | None]) -> dict[str, Any]:
    """Return mean, lowest and highest."""
    known = [value for value in values if value is not None]
    if not known:
        return {"mean": None}
    return {
        "mean": round(statistics.mean(known), 4),
        "low": round(min(known), 4),
        "high": round(max(known), 4),
    }


def curve(path: Path) -> list[tuple[float, float]]:
    """Return minutes and held-out exact match of a run's evaluations."""
    records = map(json.loads, (path / "log.jsonl").read_text().splitlines())
    points = []
    for record in records:
        right = record.get("exact_match", record.get("held_out_exact_match"))
        if right is not None:
            points.append((round(record["seconds"] / 60, 2), round(right, 4)))
    return points


def draw(figures: dict[str, Any]) -> None:
    """Write docs/learning.json and docs/learning.png."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    (DOCS / "learning.json").write_text(json.dumps(figures, indent=1) + "\n")
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    stages = figures["stages"]
    labels = (f"SFT for {STAGES['long-sft'].minutes} minutes", "SFT to 60%", "then GRPO")
    ends = dict(zip(stages["sft"]["seeds"], stages["sft"]["curves"], strict=True))
    for number, stage in enumerate(("long-sft", "sft", "grpo")):
        found = stages.get(stage, {"seeds": [], "curves": []})
        for place, (seed, points) in enumerate(zip(found["seeds"], found["curves"], strict=True)):
            start = ends[seed][-1][0] if stage == "grpo" else 0.0
            left.plot(
                [start + minutes for minutes, _ in points],
                [value for _, value in points],
                color=("lightgrey", "C0", "C1")[number],
                label=None if place else labels[number],
            )
    left.set(title="One line a seed", xlabel="minutes on one core", ylim=(0, 1))
    left.set_ylabel("exact match, a held-out universe")
    left.legend(fontsize=8, loc="lower right")
    for place, stage in enumerate(reversed(stages)):
        for shift, name in ((0.12, "greedy"), (-0.12, "drawn")):
            row = stages[stage]["test"][name]["exact_match"]
            right.plot(
                [row["low"], row["mean"], row["high"]],
                [place + shift] * 3,
                color="C2" if name == "greedy" else "C3",
                marker="|",
                label=None if place else name,
            )
    right.set_yticks(
        range(len(stages)), [each.replace("short-", "2 min ") for each in reversed(stages)]
    )
    right.set(
        title="Four other held-out universes",
        xlabel="exact match: lowest, mean, highest of three seeds",
        xlim=(0, 1),
    )
    right.legend(fontsize=8, loc="lower left")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(DOCS / "learning.png", dpi=110)
    for stage, found in stages.items():
        shares = [
            f"{name} {row['mean']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            for name in ("greedy", "drawn")
            for row in [found["test"][name]["exact_match"]]
        ]
        slope = found["test"]["greedy"]["searches_per_hop"]["mean"]
        print(f"{stage:26} exact match {', '.join(shares)}; searches a hop {slope}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--stages", nargs="+", default=list(STAGES), choices=list(STAGES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--retest", nargs=2, metavar=("SEED", "STAGE"))
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--run", nargs=2, metavar=("SEED", "STAGE"))
    arguments = parser.parse_args()
    if arguments.run:
        run_stage(int(arguments.run[0]), arguments.run[1])
        return
    if arguments.retest:
        test(int(arguments.retest[0]), arguments.retest[1])
        return
    if not arguments.draw:
        run_all(arguments)
    draw(collect())


if __name__ == "__main__":
    main()
