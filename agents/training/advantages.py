"""Advantages: how much better an episode, or a turn of it, was than its like.

An estimator takes the trajectories of a whole batch, several groups in any order, and returns for
each of them, in the same order, one number a turn (float64). The pay of an episode is its
``total_reward``. Members of a group are told by ``Trajectory.group``; an episode without one is a
group of its own. What was paid the same, to 1e-9, is no better and no worse: exactly 0.0.

Where a standard deviation divides, it is that of a sample (Bessel's correction), as the common
trainers compute it; the papers leave it open.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..rollouts.pipeline import group_key
from ..rollouts.trajectory import Trajectory

__all__ = ["ESTIMATORS", "Estimator", "dr_grpo", "grpo", "reinforce_plus_plus", "rloo"]

Values = NDArray[np.float64]
Estimator = Callable[[Sequence[Trajectory]], list[Values]]

_TOLERANCE = 1e-9


def grpo(trajectories: Sequence[Trajectory], *, epsilon: float = 1e-6) -> list[Values]:
    """Return ``(R - mean) / (std + epsilon)`` over the group, for every turn of an episode.

    GRPO with outcome supervision (Shao et al. 2024, arXiv:2402.03300, section 4.1.2). Published
    trainers give the only member of a group its bare reward; here it has nothing to be compared
    with and gets 0.

    Args:
        trajectories: The batch.
        epsilon: Added to the standard deviation.
    """
    pay = _pay(trajectories)
    return _spread(trajectories, _by(_groups(trajectories), pay, lambda x: _z_scores(x, epsilon)))


def dr_grpo(trajectories: Sequence[Trajectory]) -> list[Values]:
    """Return ``R - mean`` over the group, for every turn of an episode.

    Dr. GRPO (Liu et al. 2025, arXiv:2503.20783, section 3.2) leaves out the standard deviation,
    which favours questions that are nearly always or nearly never answered. Its other half, no
    division by an episode's length, is ``aggregate(how="constant")`` in ``objectives``.
    """
    return _spread(trajectories, _by(_groups(trajectories), _pay(trajectories), _centred))


def rloo(trajectories: Sequence[Trajectory]) -> list[Values]:
    """Return ``R`` minus the mean of the *other* members, for every turn of an episode.

    REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv:2402.14740, section 3.2, after Kool et al.
    2019): ``n / (n - 1)`` times what ``dr_grpo`` gives. The only member of a group gets 0.
    """

    def leave_one_out(pay: Values) -> Values:
        return _centred(pay) * (len(pay) / max(len(pay) - 1, 1))

    return _spread(trajectories, _by(_groups(trajectories), _pay(trajectories), leave_one_out))


def reinforce_plus_plus(
    trajectories: Sequence[Trajectory], *, group_baseline: bool = True, epsilon: float = 1e-6
) -> list[Values]:
    """Return pay normalised over the whole batch, for every turn of an episode.

    REINFORCE++ (Hu et al. 2025, arXiv:2501.03262). With ``group_baseline`` the mean of the group
    is taken off first, and what is left is divided by its standard deviation in the batch
    ("REINFORCE++ w/ Baseline", for groups of several); without it, pay is compared with all of
    the batch, whatever the question ("REINFORCE++", for groups of one). Published code weighs an
    episode by its tokens when it takes mean and deviation; here each episode counts once.

    Args:
        trajectories: The batch.
        group_baseline: Whether the mean of the group is taken off first.
        epsilon: Added to the standard deviation.
    """
    pay = _pay(trajectories)
    if group_baseline:
        pay = _by(_groups(trajectories), pay, _centred)
    return _spread(trajectories, _z_scores(pay, epsilon, centre=not group_baseline))


def _pay(trajectories: Sequence[Trajectory]) -> Values:
    return np.array([each.total_reward for each in trajectories], dtype=np.float64)


def _spread(trajectories: Sequence[Trajectory], values: Values) -> list[Values]:
    """Repeat one number an episode over its turns."""
    return [
        np.full(len(each.turns), value)
        for each, value in zip(trajectories, values.tolist(), strict=True)
    ]


def _groups(trajectories: Sequence[Trajectory]) -> list[Hashable]:
    """Return what tells groups apart, for each trajectory."""
    return [group_key(each) if each.group else place for place, each in enumerate(trajectories)]


def _by(keys: Sequence[Hashable], pay: Values, compare: Callable[[Values], Values]) -> Values:
    """Compare within those that share a key."""
    members: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        members.setdefault(key, []).append(place)
    values = np.zeros_like(pay)
    for places in members.values():
        values[places] = compare(pay[places])
    return values


def _centred(pay: Values) -> Values:
    """Take off the mean; exactly 0 where all is the same."""
    return np.subtract(pay, pay.mean()) if _differ(pay) else np.zeros_like(pay)


def _z_scores(pay: Values, epsilon: float, *, centre: bool = True) -> Values:
    """Divide by the standard deviation; exactly 0 where all is the same."""
    if not _differ(pay):
        return np.zeros_like(pay)
    return np.divide(pay - pay.mean() if centre else pay, pay.std(ddof=1) + epsilon)


def _differ(pay: Values) -> bool:
    return len(pay) > 1 and bool(np.ptp(pay) > _TOLERANCE)


ESTIMATORS: dict[str, Estimator] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "reinforce_plus_plus": reinforce_plus_plus,
}
