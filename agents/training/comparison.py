"""How episodes are compared with their like: what estimators of advantages are made of."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..rollouts.pipeline import group_key
from ..rollouts.trajectory import Trajectory

__all__ = [
    "Values",
    "centred",
    "compared",
    "differ",
    "groups",
    "pay",
    "spread",
    "uneven",
    "z_scores",
]

Values = NDArray[np.float64]

_TOLERANCE = 1e-9  # as in GroupVariance: what differs by less was paid the same


def pay(trajectories: Sequence[Trajectory]) -> Values:
    """Return what each episode was paid in all, of shape (trajectories,)."""
    return np.array([each.total_reward for each in trajectories], dtype=np.float64)


def groups(trajectories: Sequence[Trajectory]) -> list[Hashable]:
    """Return what tells groups apart, for each trajectory; without a group it is its own."""
    return [group_key(each) if each.group else place for place, each in enumerate(trajectories)]


def spread(trajectories: Sequence[Trajectory], values: Values) -> list[Values]:
    """Return for each trajectory its one value, repeated over its turns."""
    return [
        np.full(len(each.turns), value)
        for each, value in zip(trajectories, values.tolist(), strict=True)
    ]


def uneven(trajectories: Sequence[Trajectory], worth: Sequence[Values]) -> list[int]:
    """Return the places of the members of groups in which any turn is better or worse."""
    keys = groups(trajectories)
    lively = {key for key, each in zip(keys, worth, strict=True) if each.any()}
    return [place for place, key in enumerate(keys) if key in lively]


def compared(
    keys: Sequence[Hashable], values: Values, compare: Callable[[Values], Values]
) -> Values:
    """Return what ``compare`` makes of the values that share a key, each in its own place."""
    members: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        members.setdefault(key, []).append(place)
    found = np.zeros_like(values)
    for places in members.values():
        found[places] = compare(values[places])
    return found


def differ(values: Values) -> bool:
    """Tell whether there are two values at least, and not all the same."""
    return len(values) > 1 and bool(np.ptp(values) > _TOLERANCE)


def centred(values: Values) -> Values:
    """Return the values minus their mean; exactly 0.0 where all are the same."""
    return np.subtract(values, values.mean()) if differ(values) else np.zeros_like(values)


def z_scores(values: Values, epsilon: float) -> Values:
    """Return ``(value - mean) / (std + epsilon)``; exactly 0.0 where all are the same.

    The deviation is that of a sample (n - 1), as common trainers compute it.
    """
    return centred(values) / (values.std(ddof=1) + epsilon if differ(values) else 1.0)
