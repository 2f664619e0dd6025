"""Advantages: how much better an episode, or a turn of it, was than its like.

An estimator takes the trajectories of a whole batch, several groups in any order, and returns for
each of them, in the same order, one number a turn (float64). The pay of an episode is its
``total_reward``. Members of a group are told by ``Trajectory.group``; an episode without one is a
group of its own. What was paid the same, to 1e-9, is no better and no worse: exactly 0.0. So is
the only member of a group: published trainers give it its bare reward.

Where a standard deviation divides, it is that of a sample (n - 1), as the common trainers have
it, but for ``hop_grouped``, whose paper writes a variance; the others leave that open. Methods with
a number for each turn are in ``turn_advantages``.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ...corpora.errors import ConfigurationError
from ..rollouts.filter import Correct
from ..rollouts.grounding import words
from ..rollouts.trajectory import Trajectory
from .comparison import Values, centred, compared, differ, groups, pay, spread, z_scores
from .turn_advantages import tail_branch, tree, turn_level

__all__ = [
    "ESTIMATORS",
    "Estimator",
    "difference",
    "dr_grpo",
    "entity_aware",
    "grpo",
    "hop_grouped",
    "reinforce_plus_plus",
    "rloo",
    "stratified",
    "tail_branch",
    "tree",
    "turn_level",
]

Estimator = Callable[[Sequence[Trajectory]], list[Values]]


def grpo(trajectories: Sequence[Trajectory], *, epsilon: float = 1e-6) -> list[Values]:
    """Return ``(R - mean) / (std + epsilon)`` over the group, for every turn of an episode.

    GRPO with outcome supervision (Shao et al. 2024, arXiv:2402.03300, section 4.1.2).

    Args:
        trajectories: The batch.
        epsilon: Added to the standard deviation.
    """
    values = compared(groups(trajectories), pay(trajectories), lambda each: z_scores(each, epsilon))
    return spread(trajectories, values)


def dr_grpo(trajectories: Sequence[Trajectory]) -> list[Values]:
    """Return ``R - mean`` over the group, for every turn of an episode.

    Dr. GRPO (Liu et al. 2025, arXiv:2503.20783) leaves out the standard deviation, which favours
    questions that are nearly always or nearly never answered. Its other half, no division by an
    episode's length, is ``aggregate(how="constant")`` of ``objectives``.
    """
    return spread(trajectories, compared(groups(trajectories), pay(trajectories), centred))


def rloo(trajectories: Sequence[Trajectory]) -> list[Values]:
    """Return ``R`` minus the mean of the *other* members, for every turn of an episode.

    REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv:2402.14740, after Kool et al. 2019); it
    is ``n / (n - 1)`` times what ``dr_grpo`` gives.
    """

    def leave_one_out(values: Values) -> Values:
        return centred(values) * (len(values) / max(len(values) - 1, 1))

    return spread(trajectories, compared(groups(trajectories), pay(trajectories), leave_one_out))


def reinforce_plus_plus(
    trajectories: Sequence[Trajectory], *, group_baseline: bool = True, epsilon: float = 1e-6
) -> list[Values]:
    """Return pay normalised over the whole batch, for every turn of an episode.

    REINFORCE++ (Hu et al. 2025, arXiv:2501.03262). With ``group_baseline`` the mean of the group
    is taken off first, and what is left is divided by its standard deviation in the batch
    ("REINFORCE++ w/ Baseline", for groups of several); without it, pay is compared with all of
    the batch, whatever the question ("REINFORCE++", for groups of one). Published code weighs an
    episode by its tokens when it takes mean and deviation; here each episode counts once. The KL
    penalty that the paper takes off the reward is no part of this; see ``objectives.kl``.

    Args:
        trajectories: The batch.
        group_baseline: Whether the mean of the group is taken off first.
        epsilon: Added to the standard deviation.
    """
    if not group_baseline:
        return spread(trajectories, z_scores(pay(trajectories), epsilon))
    values = compared(groups(trajectories), pay(trajectories), centred)
    scale = values.std(ddof=1) + epsilon if differ(values) else 1.0
    return spread(trajectories, values / scale)  # not centred again: what is 0 stays 0


def stratified(
    trajectories: Sequence[Trajectory],
    *,
    strata: Callable[[Trajectory], Hashable] | None = None,
    alpha: float = 0.5,
    epsilon: float = 1e-6,
) -> list[Values]:
    """Return ``alpha z(stratum) + (1 - alpha) z(group)``, for every turn of an episode.

    Stratified GRPO (Zhu et al. 2025, arXiv:2510.06214): members of a group are compared with
    those of the same structure, their stratum, and the blend with GRPO keeps a signal where a
    stratum has one member. Formula and blend are the paper's, its value of ``alpha`` was not to
    be had: 0.5 is ours.

    Args:
        trajectories: The batch.
        strata: Tells strata apart; by default the number of searches, ``outcome["searches"]``.
        alpha: The weight of the stratum, from 0 to 1.
        epsilon: Added to each standard deviation.

    Raises:
        ConfigurationError: ``alpha`` is out of range, or an outcome has no ``searches``.
    """
    if not 0 <= alpha <= 1:
        raise ConfigurationError(f"alpha must be from 0 to 1, got {alpha}")
    stratum = strata or (lambda each: _outcome(each, "searches", "strata"))
    whole = groups(trajectories)
    parts = [(key, stratum(each)) for key, each in zip(whole, trajectories, strict=True)]
    paid = pay(trajectories)
    local = compared(parts, paid, lambda each: z_scores(each, epsilon))
    overall = compared(whole, paid, lambda each: z_scores(each, epsilon))
    return spread(trajectories, alpha * local + (1 - alpha) * overall)


def hop_grouped(
    trajectories: Sequence[Trajectory],
    *,
    hops: Callable[[Trajectory], Hashable] | None = None,
    epsilon: float = 1e-6,
) -> list[Values]:
    """Return ``(R - mean) / sqrt(var + epsilon)`` over the episodes of as many hops.

    HRPO of Dr. Zero (Yue et al. 2026, arXiv:2601.07055, equations 2 and 3), for every turn. There
    it trains the policy that asks, one question a prompt; here whoever plays. Episodes are
    compared across questions and groups, so groups of one do; a group whose members were paid the
    same gets 0 only if all questions of as many hops were. The paper pairs it with ``reinforce``,
    without clipping.

    Args:
        trajectories: The batch.
        hops: Tells what is compared; by default ``outcome["hops"]``.
        epsilon: Added to the variance.

    Raises:
        ConfigurationError: An outcome has no ``hops``.
    """
    number = hops or (lambda each: _outcome(each, "hops", "hops"))

    def normalised(values: Values) -> Values:
        return centred(values) / math.sqrt(values.var() + epsilon)

    keys = [number(each) for each in trajectories]
    return spread(trajectories, compared(keys, pay(trajectories), normalised))


def entity_aware(
    trajectories: Sequence[Trajectory],
    *,
    alpha: float = 0.3,
    entities: Callable[[Trajectory], Sequence[str]] | None = None,
    trains_overlong: bool = False,
    epsilon: float = 1e-6,
) -> list[Values]:
    """Return GRPO's advantages with a bonus for wrong episodes that named the right entities.

    E-GRPO (Zhao et al. 2025, arXiv:2510.24694, equations 1 to 6). A wrong episode's pay grows by
    ``alpha`` times the share of the gold entities that stand in what the policy itself wrote,
    over the largest share in its group. No bonus after an error: a call that was not accepted
    (the paper: a fault of format) or an overlong episode, one whose reply was cut off or that did
    not come to an answer. Overlong ones count in mean and deviation, but are not trained on.

    The paper looks in thoughts only, for the exact phrase; here in all that was written, queries
    and answers too, word by word without case, since policies without thoughts write nothing
    else. It pays 1, 0 or the bonus; here the bonus is added to whatever was paid.

    Args:
        trajectories: The batch.
        alpha: The weight of the bonus; 0.3 was the best of the paper's.
        entities: Gives the gold entities; by default ``outcome["entities"]``, the titles of the
            evidence.
        trains_overlong: Whether overlong episodes keep their advantage.
        epsilon: Added to the standard deviation.

    Raises:
        ConfigurationError: An outcome has no ``entities``.
    """
    gold = entities or (lambda each: _outcome(each, "entities", "entities"))
    overlong = np.array([_is_overlong(each) for each in trajectories], dtype=bool)
    near_miss = np.array([_may_be_near_miss(each) for each in trajectories], dtype=bool)
    named = np.array([_share_named(each, gold(each)) for each in trajectories], dtype=np.float64)
    keys = groups(trajectories)
    relative = compared(keys, named, lambda each: each / (each.max() or 1.0))
    paid = pay(trajectories) + alpha * relative * near_miss
    values = compared(keys, paid, lambda each: z_scores(each, epsilon))
    return spread(trajectories, values if trains_overlong else np.where(overlong, 0.0, values))


def difference(
    trajectories: Sequence[Trajectory],
    *,
    worth: Callable[[Trajectory], float] | None = None,
    has_baseline: bool = True,
) -> list[Values]:
    """Return what an agent was worth to its team, minus its mean worth in its group.

    The worth is a difference reward (Wolpert and Tumer, arXiv:cs/9908014): the team's return
    minus its return without this agent's reports, what ``agents.teams.difference_rewards`` plays
    again and measures. It is a counterfactual baseline already (Foerster et al. 2018,
    arXiv:1705.08926, equation 4), so ``has_baseline=False`` takes it as it is, and then groups of
    one do. With a baseline, each agent is compared with itself alone, by ``Trajectory.agent``, as
    in Dr. MAS (Feng et al. 2026, arXiv:2602.08847), but not divided by the deviation.

    Args:
        trajectories: The batch: each agent's part of each team episode.
        worth: Gives the worth; by default ``outcome["difference"]``.
        has_baseline: Whether the mean of the group is taken off.

    Raises:
        ConfigurationError: An outcome has no ``difference``.
    """
    value = worth or (lambda each: _outcome(each, "difference", "worth"))
    worths = np.array([float(value(each)) for each in trajectories], dtype=np.float64)
    if not has_baseline:
        return spread(trajectories, worths)
    keys = [(key, each.agent) for key, each in zip(groups(trajectories), trajectories, strict=True)]
    return spread(trajectories, compared(keys, worths, centred))


def _outcome(trajectory: Trajectory, name: str, argument: str) -> Any:
    value = trajectory.outcome.get(name)
    if value is None:
        raise ConfigurationError(
            f"trajectory {trajectory.id!r} has no outcome[{name!r}]; this environment does not "
            f"tell it, or it was written before it did: pass {argument}=, a function that does"
        )
    return value


def _is_overlong(trajectory: Trajectory) -> bool:
    """Tell whether tokens or turns ran out."""
    is_cut = any(turn.finish == "length" for turn in trajectory.turns)
    return is_cut or trajectory.outcome.get("answer") is None


def _may_be_near_miss(trajectory: Trajectory) -> bool:
    """Tell whether an episode came to an answer, without an error, and it is wrong."""
    has_failed = _is_overlong(trajectory) or any(turn.error for turn in trajectory.turns)
    return not has_failed and not Correct().keeps(trajectory)


def _share_named(trajectory: Trajectory, entities: Sequence[str]) -> float:
    """Return the share of the entities that stand in what the policy wrote."""
    written = [f" {' '.join(words(_text(turn.action)))} " for turn in trajectory.turns]
    phrases = {f" {' '.join(words(entity))} " for entity in entities if words(entity)}
    return sum(any(p in text for text in written) for p in phrases) / max(len(phrases), 1)


def _text(action: Any) -> str:
    """Return all texts of an action, one a line."""
    if isinstance(action, Mapping):
        return "\n".join(map(_text, action.values()))
    return action if isinstance(action, str) else ""


ESTIMATORS: dict[str, Estimator] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "reinforce_plus_plus": reinforce_plus_plus,
    "stratified": stratified,
    "turn_level": turn_level,
    "tree": tree,
    "tail_branch": tail_branch,
    "hop_grouped": hop_grouped,
    "entity_aware": entity_aware,
    "difference": difference,
}
