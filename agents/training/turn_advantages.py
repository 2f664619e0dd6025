"""Advantages that look inside episodes: returns of turns, trees, tails."""

from collections.abc import Hashable, Sequence

import numpy as np

from ...corpora.errors import ConfigurationError
from ..rollouts.trajectory import Trajectory
from ..rollouts.trees import tree_of
from .comparison import Values, compared, groups, pay, spread, z_scores

__all__ = ["tail_branch", "tree", "turn_level"]


def turn_level(
    trajectories: Sequence[Trajectory],
    *,
    discount: float = 1.0,
    is_pooled: bool = False,
    epsilon: float = 1e-6,
) -> list[Values]:
    """Return each turn's discounted return, normalised over the group's turns of that number.

    The return of turn t is ``r_t + discount r_(t+1) + discount^2 r_(t+2) + ...``, and its
    advantage ``(return - mean) / (std + epsilon)``: a turn is paid for what came with it and
    after it, never for what came before. Discounted returns, normalised, are what GTPO takes
    (Ding et al. 2025, arXiv:2511.14846; its abstract says no more, so comparing turn with turn
    is our reading), and turns are compared with turns in MT-GRPO (Zeng et al. 2025,
    arXiv:2505.11821). A turn that only the longest member came to has none to be compared with,
    and gets 0; pooled, all turns of the group are compared with one another.

    With a reward at the end alone and no discount, a group that was paid the same gets 0.

    Args:
        trajectories: The batch.
        discount: From 0 to 1.
        is_pooled: Whether turns are compared whatever their number.
        epsilon: Added to the standard deviation.

    Raises:
        ConfigurationError: The discount is out of range.
    """
    if not 0 <= discount <= 1:
        raise ConfigurationError(f"discount must be from 0 to 1, got {discount}")
    keys: list[Hashable] = []
    returns: list[Values] = []
    for key, each in zip(groups(trajectories), trajectories, strict=True):
        returns.append(_returns(each, discount))
        keys += [(key, None if is_pooled else number) for number in range(len(each.turns))]
    flat = np.concatenate([np.zeros(0), *returns])
    values = compared(keys, flat, lambda each: z_scores(each, epsilon))
    ends = np.cumsum([len(each.turns) for each in trajectories])
    return np.split(values, ends[:-1]) if len(ends) else []


def tree(trajectories: Sequence[Trajectory], *, epsilon: float = 1e-6) -> list[Values]:
    """Return ``z(group) + z(tree)`` of each leaf, for every turn on its way.

    Tree-GRPO (Ji et al. 2025, arXiv:2509.21240): the sum of the inter-tree and the intra-tree
    advantage; within a tree, leaves share first turns, so the second compares what came after
    they parted. Turns that several leaves share are trained with each leaf's advantage, as there.
    Normalising within the tree what was normalised over the group already would give the same but
    for epsilon. Where nothing branches it is ``grpo``.

    Args:
        trajectories: The batch, with whole trees.
        epsilon: Added to each standard deviation.

    Raises:
        CorpusError: The parent of a trajectory is not in the batch.
    """
    paid = pay(trajectories)
    inter = compared(groups(trajectories), paid, lambda each: z_scores(each, epsilon))
    intra = compared(_trees(trajectories), paid, lambda each: z_scores(each, epsilon))
    return spread(trajectories, inter + intra)


def tail_branch(trajectories: Sequence[Trajectory], *, epsilon: float = 1e-6) -> list[Values]:
    """Return a chain's advantage for the turns before its cut, an ending's for those after it.

    BranPO (Zhao et al. 2026, arXiv:2602.03719), as published code has it: the turns before the
    cut are paid the mean over all endings of their chain, and normalised over the chains of the
    group; an ending is paid what its episode was, and normalised over all endings of the group.
    The turns that a branch took over from its chain are trained there, once, and get 0 here.
    Neither the preferences nor the masking of redundant steps of that code is here. A chain
    without branches counts as all before its cut.

    Args:
        trajectories: The batch: chains and branches, as ``generate_tails`` plays them.
        epsilon: Added to each standard deviation.

    Raises:
        CorpusError: The parent of a trajectory is not in the batch.
    """
    trees = _trees(trajectories)
    paid = pay(trajectories)
    keys = groups(trajectories)
    worth = compared(trees, paid, lambda each: np.full_like(each, each.mean()))
    cuts = _cuts(trajectories, trees)

    def normalised(places: list[int], values: Values) -> dict[int, float]:
        some = compared([keys[p] for p in places], values[places], lambda x: z_scores(x, epsilon))
        return dict(zip(places, some.tolist(), strict=True))

    chains = [p for p, each in enumerate(trajectories) if not each.parent and cuts[p] > 0]
    endings = [p for p, each in enumerate(trajectories) if len(each.turns) > cuts[p]]
    before, after = normalised(chains, worth), normalised(endings, paid)
    return [
        np.concatenate(
            [
                np.full(cuts[place], before.get(place, 0.0)),
                np.full(len(each.turns) - cuts[place], after.get(place, 0.0)),
            ]
        )
        for place, each in enumerate(trajectories)
    ]


def _returns(trajectory: Trajectory, discount: float) -> Values:
    returns, ahead = np.zeros(len(trajectory.turns)), 0.0
    for number, turn in reversed(list(enumerate(trajectory.turns))):
        ahead = turn.reward + discount * ahead
        returns[number] = ahead
    return returns


def _trees(trajectories: Sequence[Trajectory]) -> list[Hashable]:
    """Return what tells trees apart, for each trajectory, in whatever order they come."""
    keys = groups(trajectories)
    trees: list[Hashable] = [None] * len(trajectories)
    for key in dict.fromkeys(keys):
        members = {p: trajectories[p] for p, other in enumerate(keys) if other == key}
        roots = tree_of(_parents_first(list(members.values())))
        for place, each in members.items():
            trees[place] = (key, roots[each.id] if each.id else place)
    return trees


def _parents_first(members: list[Trajectory]) -> list[Trajectory]:
    parents = {each.id: each.parent for each in members}

    def ancestors(each: Trajectory) -> int:
        count, parent = 0, each.parent
        while parent in parents and count <= len(members):
            count, parent = count + 1, parents[parent]
        return count

    return sorted(members, key=ancestors)


def _cuts(trajectories: Sequence[Trajectory], trees: Sequence[Hashable]) -> list[int]:
    """Return for each trajectory how many first turns are not its own ending.

    For a branch those that it took over; for a chain those that all its branches took over.
    """
    first: dict[Hashable, int] = {}
    for key, each in zip(trees, trajectories, strict=True):
        if each.parent:
            first[key] = min(each.shared_turns, first.get(key, each.shared_turns))
    return [
        each.shared_turns if each.parent else first.get(key, len(each.turns))
        for key, each in zip(trees, trajectories, strict=True)
    ]
