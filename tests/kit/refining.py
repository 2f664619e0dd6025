"""Scripted episodes of query refinement; a module that spawned processes can import."""

import numpy as np

from seekgym.envs.query_refinement import QueryRefinementEnv


def plain(value):
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def script(count, seed):
    generator = np.random.default_rng(seed)
    return [
        int(generator.integers(0, 30)) if generator.random() < 0.5 else None for _ in range(count)
    ]


def play(env, places, seed=0):
    """Play places, None being a legal one drawn at random, and return all in plain values."""
    generator = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    records = [plain([*map(plain, (observation, info))])]
    for place in places:
        legal = np.flatnonzero(info["action_mask"])
        action = int(generator.choice(legal)) if place is None else place
        observation, reward, terminated, truncated, info = env.step(action)
        records.append([plain(observation), reward, terminated, truncated, plain(info)])
        if terminated or truncated:
            observation, info = env.reset()
            records.append([*map(plain, (observation, info))])
    return records


def digest(seed):
    return repr(play(QueryRefinementEnv(), script(60, seed), seed))
