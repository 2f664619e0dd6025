"""What a team does a second, what working at the same time saves, and that menus can be learned.

Run: python benchmarks/team.py                 speed and critical paths (a minute)
     python benchmarks/team.py --learn 300     also independent PPO, three seeds, 300 s each;
                                               writes docs/team_learning.json and .svg

Rivals in the same run: the single oracle for the critical path, the random team for learning.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from seekgym.agents import OracleAgent
from seekgym.agents.rollouts import play
from seekgym.agents.teams import TEAMS, branches, play_team
from seekgym.agents.teams.ppo import IndependentPPO, Update
from seekgym.envs import team

DOCS = Path(__file__).parent.parent / "docs"
SPEED_WORLD = "phantom:people=5000,world_seed=7"
BRANCHED_WORLD = (
    "knowledge:entities=1200,kinds=('chain','parallel','comparison','conjunction','superlative'),"
    "hops=(2,4),constraints=(2,4)"
)
LEARNED = {"searchers": 2, "rounds": 2}
LEARNED_WORLD = "phantom:people=200,hops=(1, 2)"
SEEDS = (0, 1, 2)
EPISODES = 200
ROUNDS = 5


def steps_per_second(env: team.TeamParallelEnv, name: str) -> list[float]:
    """Return agent steps a second, resets included, of several rounds of recorded episodes."""
    episodes = [play_team(env, TEAMS[name], seed=seed).actions for seed in range(EPISODES)]
    steps = sum(len(actions) for episode in episodes for actions in episode)
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for seed, episode in enumerate(episodes):
            env.reset(seed=seed)
            for actions in episode:
                env.step(actions)
        found.append(steps / (time.perf_counter() - start))
    return found


def show_speed() -> None:
    """Print agent steps a second: turns of agents that were asked, searches included."""
    print("agent steps a second (median, best of 5 rounds), phantom world of 5,000 people")
    for searchers in (1, 3, 8):
        env = team.parallel_env(SPEED_WORLD, searchers=searchers)
        for name in ("scripted-team", "reading-team", "random-team"):
            found = steps_per_second(env, name)
            middle = statistics.median(found)
            print(f"  {searchers} searchers, {name:14} {middle:8,.0f} {max(found):8,.0f}")
    env = team.menu_parallel_env(LEARNED_WORLD, **LEARNED)
    found = steps_per_second(env, "random-team")
    print(f"  2 searchers, menus          {statistics.median(found):8,.0f} {max(found):8,.0f}")


def show_critical_paths(*, answerer: bool) -> None:
    """Print the scripted team's critical path beside the single oracle's turns, by branches."""
    env = team.parallel_env(
        BRANCHED_WORLD, searchers=4, rounds=5, search_turns=9, answerer=answerer
    )
    oracle = OracleAgent(env.source)
    rows: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
    right = 0.0
    for task in env.source.tasks:
        episode = play_team(env, TEAMS["scripted-team"], options={"task": task.id})
        right += episode.outcome["exact_match"]
        found = episode.outcome["metrics"]
        alone = play(env.source, oracle, options={"task": task.id})
        rows[branches(task)].append(
            (
                found["critical_path_ticks"],
                len(alone.turns),
                found["critical_path_calls"],
                len(alone.turns) - 1,
            )
        )
    number = sum(map(len, rows.values()))
    who = "with" if answerer else "without"
    print(f"critical path, {who} answerer: {right:.0f} of {number} right")
    print("  b  tasks  ticks  oracle  ratio  shorter | calls  oracle  ratio  shorter")
    for b, found_rows in sorted(rows.items()):
        ticks, turns, calls, alone_calls = (
            statistics.mean(column) for column in zip(*found_rows, strict=True)
        )
        shorter = sum(row[0] < row[1] for row in found_rows)
        fewer = sum(row[2] < row[3] for row in found_rows)
        print(
            f"  {b}  {len(found_rows):5}  {ticks:5.2f}  {turns:6.2f}"
            f"  {ticks / turns:5.2f}  {shorter:7}"
            f" | {calls:5.2f}  {alone_calls:6.2f}  {calls / alone_calls:5.2f}  {fewer:7}"
        )


def learn(seed: int, seconds: float) -> dict[str, Any]:
    """Train on one world for so many seconds, and compare with chance on another."""
    env = team.menu_parallel_env(LEARNED_WORLD, **LEARNED)
    learner = IndependentPPO(env, seed=seed)
    start = time.perf_counter()
    updates = learner.train(lambda _: time.perf_counter() - start < seconds)
    took = time.perf_counter() - start
    held_out = team.menu_parallel_env(f"{LEARNED_WORLD},split=test", **LEARNED)
    tasks = [task.id for task in held_out.source.tasks]
    found = learner.evaluate(held_out, tasks)
    untrained = IndependentPPO(env, seed=seed).evaluate(held_out, tasks)
    chance = [
        play_team(held_out, TEAMS["random-team"], seed=number, options={"task": task})
        for number, task in enumerate(tasks)
    ]
    return {
        "seed": seed,
        "seconds": round(took, 1),
        "episodes": updates[-1].episodes,
        "steps": updates[-1].steps,
        "held_out_tasks": len(tasks),
        "random_return": statistics.mean(e.outcome["team_return"] for e in chance),
        "untrained_return": statistics.mean(untrained),
        "learned_return": statistics.mean(found),
        "curve": thin(updates),
    }


def thin(updates: list[Update], points: int = 60) -> list[tuple[int, int, float]]:
    """Return episodes, steps and mean return of so many stretches of the training."""
    size = max(1, len(updates) // points)
    parts = [updates[start : start + size] for start in range(0, len(updates), size)]
    return [
        (part[-1].episodes, part[-1].steps, round(statistics.mean(u.mean_return for u in part), 4))
        for part in parts
    ]


def draw_curves(runs: list[dict[str, Any]], path: Path) -> None:
    """Write the learning curves as a drawing."""
    width, height, left, top = 640, 300, 50, 20
    last = max(run["curve"][-1][1] for run in runs)
    highest = max(value for run in runs for _, _, value in run["curve"])
    chance = statistics.mean(run["random_return"] for run in runs)

    def place(steps: float, value: float) -> str:
        x = left + steps / last * (width - left - 20)
        y = top + (1 - value / highest) * (height - top - 40)
        return f"{x:.1f},{y:.1f}"

    lines = []
    for run, colour in zip(runs, ("#2a6fdb", "#c0561f", "#3a8f3a"), strict=False):
        points = " ".join(place(steps, value) for _, steps, value in run["curve"])
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    start, end = place(0, chance), place(last, chance)
    dashed = f'<polyline points="{start} {end}" stroke="#888" stroke-dasharray="4"/>'
    (x0, y0), (_, y1) = place(0, 0).split(","), place(0, highest).split(",")
    texts = (
        f'<text x="5" y="{y1}">{highest:.2f}</text><text x="5" y="{y0}">0</text>'
        f'<text x="{x0}" y="{height - 10}">0</text>'
        f'<text x="{width - 20}" y="{height - 10}" text-anchor="end">{last:,} agent steps; '
        "three seeds, dashed: random team</text>"
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
        f"{dashed}{''.join(lines)}{texts}</svg>\n",
        encoding="utf-8",
    )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learn", type=float, metavar="SECONDS", help="train, each seed so long")
    parser.add_argument("--only-learn", action="store_true", help="leave out speed and paths")
    arguments = parser.parse_args()
    if not arguments.only_learn:
        show_speed()
        show_critical_paths(answerer=True)
        show_critical_paths(answerer=False)
    if arguments.learn is None:
        return
    runs = []
    for seed in SEEDS:
        runs.append(learn(seed, arguments.learn))
        shown = {key: value for key, value in runs[-1].items() if key != "curve"}
        print(json.dumps(shown), flush=True)
        text = json.dumps({"world": LEARNED_WORLD, **LEARNED, "runs": runs}, indent=1)
        (DOCS / "team_learning.json").write_text(text + "\n", encoding="utf-8")
        draw_curves(runs, DOCS / "team_learning.svg")


if __name__ == "__main__":
    main()
