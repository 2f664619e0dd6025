"""Checks that the same seed and actions give the same bytes, wherever and however they are run."""

import copy
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import numpy as np

from ..envs.wrappers.menu import find_menu
from .probe import (
    Case,
    CheckFailedError,
    Record,
    actions_for,
    digest,
    game_of,
    plain,
    play_script,
    record,
)

__all__ = [
    "check_copies",
    "check_determinism",
    "check_interleaving",
    "check_processes",
    "check_snapshots",
    "check_threads",
]

_COUNT = 60
_SNAPSHOT_BYTES = 200_000


def check_determinism(case: Case) -> None:
    """Two environments with one seed agree, whatever the global generators do."""
    first, second = case.make(), case.make()
    actions = actions_for(first, _COUNT, seed=5)
    np.random.seed(0)
    expected = record(first, actions, seed=5)
    np.random.seed(1)
    _compare(expected, record(second, actions, seed=5), "a second environment")
    _compare(expected, record(first, actions, seed=5), "the same environment, seeded again")
    other = record(second, actions, seed=6)
    tasks = {step.info["task_id"] for step in (*expected, *other)}
    if len(tasks) == 1 and len(case.game().tasks) > 1:
        raise CheckFailedError("every seed draws the same task")


def check_interleaving(case: Case) -> None:
    """Environments that take turns do not disturb each other."""
    alone = [_played(case, seed) for seed in range(4)]
    envs = [case.make() for _ in range(4)]
    scripts = [actions_for(env, _COUNT, seed=seed) for seed, env in enumerate(envs)]
    runs = [play_script(env, scripts[seed], seed) for seed, env in enumerate(envs)]
    together: list[list[Record]] = [[] for _ in envs]
    for row in zip_longest(*runs):
        for kept, step in zip(together, row, strict=True):
            if step is not None:
                kept.append(step)
    for expected, found in zip(alone, together, strict=True):
        _compare(expected, found, "an environment that took turns with others")


def check_copies(case: Case) -> None:
    """A pickled and a deep-copied environment go on, in mid-episode, like the original."""
    for way, clone in (("pickle", _pickled), ("deepcopy", copy.deepcopy)):
        env = case.make()
        script = actions_for(env, 6, seed=7)
        env.reset(seed=7)
        _, _, terminated, truncated, _ = env.step(script[0])
        if terminated or truncated:
            env.reset()
        other = clone(env)
        _compare(_go_on(env, script[1:]), _go_on(other, script[1:]), f"a {way}d copy")


def check_snapshots(case: Case) -> None:
    """Going back to a snapshot, here or in another environment, replays the same episode."""
    view, other_view = case.view(), case.view()
    env, other = game_of(view), game_of(other_view)
    script = actions_for(view, 4, seed=8)
    view.reset(seed=8)
    view.step(0 if find_menu(view) is not None else env.opening_action())
    state = env.snapshot()
    size = len(pickle.dumps(state))
    if size > _SNAPSHOT_BYTES:
        raise CheckFailedError(f"a snapshot takes {size} bytes; it must not hold the corpus")
    expected = _go_on(view, script)
    env.restore(state)
    _compare(expected, _go_on(view, script), "the restored environment")
    other_view.reset(seed=1)
    other.restore(pickle.loads(pickle.dumps(state)))
    _compare(expected, _go_on(other_view, script), "another environment restored from a pickle")


def check_threads(case: Case) -> None:
    """Eight threads, each with its own environment, give what one gives."""
    expected = digest(case.make, _COUNT, 9)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: digest(case.make, _COUNT, 9), range(8)))
    if any(value != expected for value in found):
        raise CheckFailedError("a thread got other bytes than a single environment")


def check_processes(case: Case) -> None:
    """Two processes with other hash seeds give what this one gives."""
    expected = digest(case.make, _COUNT, 10)
    context = multiprocessing.get_context("spawn")
    for hash_seed in ("0", "1"):
        with (
            _environment_variable("PYTHONHASHSEED", hash_seed),
            ProcessPoolExecutor(1, mp_context=context) as pool,
        ):
            found = pool.submit(digest, case.make, _COUNT, 10).result()
        if found != expected:
            raise CheckFailedError(
                f"a process with PYTHONHASHSEED={hash_seed} got other bytes than this one"
            )


def _played(case: Case, seed: int) -> list[Record]:
    env = case.make()
    return record(env, actions_for(env, _COUNT, seed=seed), seed=seed)


def _go_on(env: Any, actions: list[Any]) -> list[Record]:
    """Step on from where the environment stands, resetting after each end."""
    records = []
    for action in actions:
        step = Record(*env.step(action))
        records.append(step)
        if step.terminated or step.truncated:
            observation, info = env.reset()
            records.append(Record(observation, 0.0, False, False, info))
    return records


def _compare(expected: list[Record], found: list[Record], who: str) -> None:
    for number, (a, b) in enumerate(zip_longest(expected, found)):
        if plain(a) != plain(b):
            raise CheckFailedError(f"{who} differs at record {number}: {a!r:.200} / {b!r:.200}")


def _pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


@contextmanager
def _environment_variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
