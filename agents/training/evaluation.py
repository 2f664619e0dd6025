"""How good a policy is in worlds that it was not trained in, and how it searches there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..policy import Policy
from ..rollouts.generate import generate
from ..rollouts.pool import make_environment
from ..rollouts.trajectory import Trajectory
from .worlds import World

__all__ = ["Evaluation", "behaviour", "evaluate", "searches_of"]


@dataclass(frozen=True)
class Evaluation:
    """What a policy reached.

    Attributes:
        episodes: How many were played.
        exact_match: The share of right answers.
        f1: The mean F1 of the answers.
        by_hops: For each number of hops: episodes, exact match, mean number of searches.
        slope: How many searches more an episode takes for each hop more, by least squares; None
            if all have equally many.
        behaviour: See ``behaviour``.
    """

    episodes: int
    exact_match: float
    f1: float
    by_hops: Mapping[int, tuple[int, float, float]]
    slope: float | None
    behaviour: Mapping[str, float]

    @property
    def record(self) -> dict[str, float | None]:
        """All of it as one flat line of a log."""
        flat: dict[str, float | None] = {
            "exact_match": self.exact_match,
            "f1": self.f1,
            "searches_per_hop": self.slope,
        }
        for hops, (_, right, searches) in self.by_hops.items():
            flat[f"exact_match_{hops}_hops"] = right
            flat[f"searches_{hops}_hops"] = searches
        return flat | dict(self.behaviour)


def evaluate(policy: Policy, world: World, *, episodes: int, seed: int = 0) -> Evaluation:
    """Play episodes in a world and say how it went.

    Episodes lost to a failure of the environment do not count.

    Args:
        policy: Who plays.
        world: Where.
        episodes: How many.
        seed: Decides the tasks and the policy's draws.
    """
    env = make_environment(world.environment, world.arguments)
    played = generate(policy, env, episodes=episodes, seed=seed, options=world.options)
    played = [trajectory for trajectory in played if trajectory.outcome.get("valid") is not False]
    tasks: Any = env.get_wrapper_attr("all_tasks")
    hops = [int(tasks[trajectory.task_id].hops) for trajectory in played]
    right = np.array([float(t.outcome["exact_match"] or 0.0) for t in played])
    searches = np.array([float(searches_of(t)) for t in played])
    by_hops = {}
    for number in sorted(set(hops)):
        chosen = np.array(hops) == number
        by_hops[number] = (
            int(chosen.sum()),
            float(right[chosen].mean()),
            float(searches[chosen].mean()),
        )
    return Evaluation(
        episodes=len(played),
        exact_match=float(right.mean()) if played else 0.0,
        f1=float(np.mean([float(t.outcome["f1"] or 0.0) for t in played])) if played else 0.0,
        by_hops=by_hops,
        slope=_slope(hops, searches),
        behaviour=behaviour(played),
    )


def behaviour(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return the figures that show early when a policy goes wrong.

    Returns:
        valid_calls: the share of turns whose call was valid; answered: the share of episodes that
        ended with an answer; cut: the share of replies that were cut off; searches: a mean for an
        episode; evidence_sets: the mean number of different sets of documents that the members of
        a group saw (Harness-G's diversity, arXiv:2607.27652), for groups of at least two.
    """
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    groups: dict[str, set[frozenset[str]]] = {}
    sizes: dict[str, int] = {}
    for trajectory in trajectories:
        seen = frozenset(d for turn in trajectory.turns for d in turn.documents)
        groups.setdefault(trajectory.group, set()).add(seen)
        sizes[trajectory.group] = sizes.get(trajectory.group, 0) + 1
    sets = [len(found) for group, found in groups.items() if sizes[group] > 1]
    figures = {
        "valid_calls": _share([turn.error is None for turn in turns]),
        "answered": _share([t.outcome.get("answer") is not None for t in trajectories]),
        "cut": _share([turn.finish == "length" for turn in turns]),
        "searches": _share([searches_of(trajectory) for trajectory in trajectories]),
    }
    return figures | ({"evidence_sets": float(np.mean(sets))} if sets else {})


def searches_of(trajectory: Trajectory) -> int:
    """Return how many searches of an episode were run, as the environment counted them."""
    calls = trajectory.outcome.get("calls") or {}
    return int(calls.get("search", 0))


def _share(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _slope(hops: Sequence[int], searches: np.ndarray) -> float | None:
    if len(set(hops)) < 2:
        return None
    return float(np.polyfit(np.array(hops, dtype=float), searches, 1)[0])
