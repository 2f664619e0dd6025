"""Divide a proof among searchers: which steps need which, and who takes what in which round."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...corpora.tasks import ProofStep, Task

__all__ = ["Capacity", "Plan", "branches", "dependencies", "make_plan"]

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


class Capacity(NamedTuple):
    """What a team can do in a round.

    Attributes:
        searchers: How many searchers there are.
        steps: How many steps of a proof one of them can take in an assignment.
        calls: How many calls a step takes.
    """

    searchers: int
    steps: int
    calls: int


class Plan(NamedTuple):
    """Who takes which steps, round by round.

    Attributes:
        rounds: For each round, the steps of each searcher that has any, in order.
        ticks: How long that takes, up to the last report read.
    """

    rounds: tuple[tuple[tuple[int, ...], ...], ...]
    ticks: int


def dependencies(task: Task) -> list[frozenset[int]]:
    """Return, for each step of a task's proof, the steps whose facts its query needs.

    A query needs a step if it names something that the question does not, and that step's fact
    is the first to name it. A document that is read without a query needs the step before.
    """
    known = _names(task.question)
    needs: list[frozenset[int]] = []
    for number, step in enumerate(task.proof):
        wanted = _names(step.query) - known
        needed: set[int] = set()
        if not step.query and number:
            needed.add(number - 1)
        while wanted:
            best = max(range(number), key=lambda i: (_hits(task.proof[i], wanted), -i), default=-1)
            if best < 0 or not _hits(task.proof[best], wanted):
                break
            needed.add(best)
            wanted -= _names(task.proof[best].fact)
        needs.append(frozenset(needed))
    return needs


def branches(task: Task) -> int:
    """Return how many steps of a task's proof can at most be taken at the same time."""
    depths: list[int] = []
    for needed in dependencies(task):
        depths.append(1 + max((depths[step] for step in needed), default=0))
    return max((depths.count(depth) for depth in depths), default=0)


def make_plan(needs: Sequence[frozenset[int]], done: frozenset[int], capacity: Capacity) -> Plan:
    """Return the quicker of two plans for the steps that are left.

    In one, a searcher goes on from its own findings as far as it can; in the other, where
    several steps need the same finding, they wait for the next round, to be divided.
    """
    plans = [_divide(needs, done, capacity, waits=waits) for waits in (False, True)]
    return min(plans, key=lambda plan: plan.ticks)


def _divide(
    needs: Sequence[frozenset[int]], done: frozenset[int], capacity: Capacity, *, waits: bool
) -> Plan:
    heights = _heights(needs)
    rounds, ticks = [], 0
    finished = set(done)
    while len(finished) < len(needs):
        left = [step for step in range(len(needs)) if step not in finished]
        lists = _one_round(needs, finished, left, heights, capacity, waits=waits)
        rounds.append(tuple(tuple(steps) for steps in lists if steps))
        finished.update(step for steps in lists for step in steps)
        ticks += 2 + capacity.calls * max(len(steps) for steps in lists)
    return Plan(tuple(rounds), ticks)


def _one_round(
    needs: Sequence[frozenset[int]],
    finished: set[int],
    left: Sequence[int],
    heights: Mapping[int, int],
    capacity: Capacity,
    *,
    waits: bool,
) -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in range(capacity.searchers)]
    place: dict[int, int] = {}
    heirs = {step: sum(step in needs[other] for other in left) for step in range(len(needs))}
    for step in sorted(left, key=lambda step: (-heights[step], step)):
        open_needs = needs[step] - finished
        if not open_needs <= place.keys():
            continue
        if waits and any(heirs[need] > 1 for need in open_needs):
            continue
        takers = {place[need] for need in open_needs} or set(range(capacity.searchers))
        taker = min(takers, key=lambda number: (len(lists[number]), number))
        if (len(takers) > 1 and open_needs) or len(lists[taker]) >= capacity.steps:
            continue
        lists[taker].append(step)
        place[step] = taker
    return lists


def _heights(needs: Sequence[frozenset[int]]) -> dict[int, int]:
    """Return how many steps hang one after the other on each."""
    heights = dict.fromkeys(range(len(needs)), 1)
    for step in reversed(range(len(needs))):
        for need in needs[step]:
            heights[need] = max(heights[need], heights[step] + 1)
    return heights


def _hits(step: ProofStep, wanted: frozenset[str]) -> int:
    return len(_names(step.fact) & wanted)


def _names(text: str) -> frozenset[str]:
    """Return the words of a text that may name something: capitals and numbers."""
    words = _WORD.findall(text)
    return frozenset(word for word in words if word[0].isupper() or word[0].isdigit())
