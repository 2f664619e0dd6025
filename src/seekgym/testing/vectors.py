"""Checks of vectors: Gymnasium's, and the environment's own."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from .probe import Case, CheckFailedError, actions_for, plain

__all__ = ["check_async_vector", "check_own_vector", "check_shared_memory"]

_ENVS = 3
_STEPS = 20


def check_async_vector(case: Case) -> None:
    """AsyncVectorEnv without shared memory gives what SyncVectorEnv gives."""
    script = _script(case)
    expected = _play(SyncVectorEnv([case.make] * _ENVS), script)
    found = _play(AsyncVectorEnv([case.make] * _ENVS, shared_memory=False, context="spawn"), script)
    _compare(expected, found, "AsyncVectorEnv")


def check_shared_memory(case: Case) -> None:
    """AsyncVectorEnv with shared memory, which cannot carry text, fails loudly.

    Observations in numbers come through it as they are.
    """
    if isinstance(case.make().observation_space, Box):
        script = _script(case)
        expected = _play(SyncVectorEnv([case.make] * _ENVS), script)
        shared = AsyncVectorEnv([case.make] * _ENVS, shared_memory=True, context="spawn")
        _compare(expected, _play(shared, script), "AsyncVectorEnv with shared memory")
        return
    try:
        vector = AsyncVectorEnv([case.make], shared_memory=True, context="fork")
    except Exception:
        return
    vector.close(terminate=True)
    raise CheckFailedError(
        "AsyncVectorEnv takes the observation space with shared memory, where text would be lost"
    )


def check_own_vector(case: Case) -> None:
    """The environment's own vector gives what SyncVectorEnv gives, in each autoreset mode."""
    if case.make_vector is None:
        return
    script = _script(case)
    for mode in AutoresetMode:
        expected = _play(SyncVectorEnv([case.make] * _ENVS, autoreset_mode=mode), script)
        vector = case.make_vector(num_envs=_ENVS, autoreset_mode=mode)
        if vector.metadata.get("autoreset_mode") != mode:
            raise CheckFailedError(f"metadata['autoreset_mode'] does not say {mode}")
        _compare(expected, _play(vector, script), f"the vector ({mode.value})")


def _script(case: Case) -> list[tuple[Any, ...]]:
    env = case.make()
    columns = [actions_for(env, _STEPS, seed=20 + number) for number in range(_ENVS)]
    return list(zip(*columns, strict=True))


def _play(vector: VectorEnv[Any, Any, Any], script: list[tuple[Any, ...]]) -> list[Any]:
    """Play a script in a vector and return all that came back, in plain Python values."""
    is_manual = vector.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    records = [plain(vector.reset(seed=11))]
    for actions in script:
        step = vector.step(actions)
        records.append(plain(step))
        done = np.logical_or(step[2], step[3])
        if is_manual and done.any():
            records.append(plain(vector.reset(options={"reset_mask": done})))
    vector.close()
    return records


def _compare(expected: list[Any], found: list[Any], who: str) -> None:
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        if repr(a) != repr(b):  # NaN stands for a score that could not be computed
            raise CheckFailedError(f"{who} differs from SyncVectorEnv at record {number}")
