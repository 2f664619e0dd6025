"""Trees and tails: episodes that branch off from others, so that first turns are played once.

A node is a whole turn. A branch goes on from a snapshot of the environment, without playing the
turns before it again, and draws anew. ``parent`` and ``shared_turns`` of each trajectory hold
the tree; ``turn_owners`` and ``tree_of`` read it.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from ...corpora.errors import CorpusError
from ...envs.episode import Snapshot
from ...envs.rules import check_at_least
from ...envs.wrappers import TextProtocol
from .filter import Valid
from .generate import play_episodes, rollout_plans
from .pool import EnvironmentPool
from .running import EpisodePlan, RunningEpisode, Start
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = ["TailShape", "TreeShape", "generate_tails", "generate_trees", "tree_of", "turn_owners"]

_STATELESS = (TextProtocol, OrderEnforcing, PassiveEnvChecker)


@dataclass(frozen=True)
class TreeShape:
    """How trees grow: M trees for each question, L rounds, N expansions a round and tree.

    Attributes:
        trees: M, the first chains of a group.
        expansions: N, how many nodes of each tree a round goes on from.
        rounds: L.

    Raises:
        ConfigurationError: A number is out of range.
    """

    trees: int = 2
    expansions: int = 2
    rounds: int = 1

    def __post_init__(self) -> None:
        """Check every number."""
        check_at_least("trees", self.trees, 1)
        check_at_least("expansions", self.expansions, 1)
        check_at_least("rounds", self.rounds, 0)

    @property
    def leaves(self) -> int:
        """How many trajectories a group has."""
        return self.trees * (1 + self.expansions * self.rounds)


@dataclass(frozen=True)
class TailShape:
    """How tails branch: each chain is cut near its end, and played on anew from there.

    Attributes:
        chains: The first chains of a group.
        branches: How many new endings each chain gets, all from the same cut.
        tail: How many turns before the end the cut is at most.

    Raises:
        ConfigurationError: A number is out of range.
    """

    chains: int = 4
    branches: int = 1
    tail: int = 2

    def __post_init__(self) -> None:
        """Check every number."""
        check_at_least("chains", self.chains, 1)
        check_at_least("branches", self.branches, 1)
        check_at_least("tail", self.tail, 1)

    @property
    def leaves(self) -> int:
        """How many trajectories a group has."""
        return self.chains * (1 + self.branches)


def generate_trees(
    policy: "Policy",
    environment: str | gym.Env[Any, Any],
    *,
    groups: int,
    shape: TreeShape = TreeShape(),
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Trajectory]:
    """Play trees as Tree-GRPO does (Ji et al. 2025, arXiv:2509.21240); return every leaf.

    The nodes that a round goes on from are drawn evenly from those inside the tree: after a
    turn, and before its episode's last. An episode of one turn has none; then it is the root.

    Args:
        policy: Who plays.
        environment: An environment's id, or one that was made.
        groups: How many questions; they are those of ``generate`` with the same seed.
        shape: How the trees grow.
        seed: Decides the tasks, the nodes and the policy's draws.
        arguments: What ``gym.make`` is given beside the id.
        options: The options of each reset.

    Returns:
        Group by group and tree by tree, each tree's first chain before its branches.
    """
    grove = _Grove(policy, environment, arguments, seed=seed)
    grove.plant(
        rollout_plans(groups * shape.trees, group_size=shape.trees, seed=seed, options=options)
    )
    for number in range(shape.rounds):
        cuts: list[tuple[int, Trajectory, int]] = []
        for place, tree in enumerate(grove.trees):
            nodes = [node for leaf in tree for node in _inner_nodes(leaf)] or _roots(tree)
            draw = np.random.default_rng(np.random.SeedSequence([seed, 5, place, number]))
            size = shape.expansions if nodes else 0
            chosen = draw.choice(len(nodes), size, replace=size > len(nodes)) if nodes else ()
            cuts.extend((place, *nodes[index]) for index in chosen)
        grove.branch(cuts)
    return grove.leaves


def generate_tails(
    policy: "Policy",
    environment: str | gym.Env[Any, Any],
    *,
    groups: int,
    shape: TailShape = TailShape(),
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Trajectory]:
    """Play chains with new endings, after BranPO (Zhao et al. 2026, arXiv:2602.03719).

    Chains and endings share their first turns, so what they are paid differently for lies in
    the endings. The place of the cut is drawn evenly from the last ``shape.tail`` turns.

    Args:
        policy: Who plays.
        environment: An environment's id, or one that was made.
        groups: How many questions; they are those of ``generate`` with the same seed.
        shape: How the tails branch.
        seed: Decides the tasks, the cuts and the policy's draws.
        arguments: What ``gym.make`` is given beside the id.
        options: The options of each reset.

    Returns:
        Group by group, each chain before its branches.
    """
    grove = _Grove(policy, environment, arguments, seed=seed)
    grove.plant(
        rollout_plans(groups * shape.chains, group_size=shape.chains, seed=seed, options=options)
    )
    cuts: list[tuple[int, Trajectory, int]] = []
    for place, [chain] in enumerate(grove.trees):
        if chain.turns and Valid().keeps(chain):
            draw = np.random.default_rng(np.random.SeedSequence([seed, 5, place]))
            back = 1 + int(draw.integers(shape.tail))
            cut = max(len(chain.turns) - back, min(1, len(chain.turns) - 1))
            cuts.extend([(place, chain, cut)] * shape.branches)
    grove.branch(cuts)
    return grove.leaves


def tree_of(trajectories: Iterable[Trajectory]) -> dict[str, str]:
    """Return for each trajectory's id the id of its tree's first chain.

    Args:
        trajectories: Of one rollout, parents before their branches.

    Raises:
        CorpusError: A parent is not there, or comes after its branch.
    """
    trees: dict[str, str] = {}
    for each in trajectories:
        _check_parent(each, trees)
        trees[each.id] = trees[each.parent] if each.parent else each.id
    return trees


def turn_owners(trajectories: Iterable[Trajectory]) -> dict[str, tuple[str, ...]]:
    """Return for each trajectory's id, turn by turn, the id of the one that played the turn.

    Two trajectories pass through the same node where they have the same owner for the same turn.

    Args:
        trajectories: Of one rollout, parents before their branches.

    Raises:
        CorpusError: A parent is not there, or comes after its branch.
    """
    owners: dict[str, tuple[str, ...]] = {}
    for each in trajectories:
        _check_parent(each, owners)
        shared = owners[each.parent][: each.shared_turns] if each.parent else ()
        owners[each.id] = shared + (each.id,) * (len(each.turns) - each.shared_turns)
    return owners


def _check_parent(trajectory: Trajectory, known: Container[str]) -> None:
    if trajectory.parent and trajectory.parent not in known:
        raise CorpusError(
            f"trajectory {trajectory.id!r} branches off from {trajectory.parent!r}, which does "
            "not come before it; pass whole groups, in the order in which they were played"
        )


class _Grove:
    """Trees while they grow, with the state before each turn."""

    def __init__(
        self,
        policy: "Policy",
        environment: str | gym.Env[Any, Any],
        arguments: Mapping[str, Any] | None,
        *,
        seed: int,
    ) -> None:
        self._policy = policy
        self._pool = EnvironmentPool(environment, arguments, protocol=policy.protocol)
        self._seed = seed
        self._states: dict[str, list[Snapshot]] = {}
        self._plans: list[EpisodePlan] = []
        self.trees: list[list[Trajectory]] = []

    @property
    def leaves(self) -> list[Trajectory]:
        """Every trajectory, tree by tree."""
        return [leaf for tree in self.trees for leaf in tree]

    def plant(self, plans: Sequence[EpisodePlan]) -> None:
        """Play the first chain of each tree."""
        self._plans = list(plans)
        self.trees = [[chain] for chain in self._play(plans)]

    def branch(self, cuts: Sequence[tuple[int, Trajectory, int]]) -> None:
        """Play on from some nodes: the place of the tree, a trajectory, how many turns it keeps."""
        grown = [len(tree) for tree in self.trees]
        plans: list[EpisodePlan] = []
        for place, trajectory, turns in cuts:
            root = self._plans[place]
            states = self._states.get(trajectory.id)
            start = Start(trajectory, turns, states[turns] if states else None)
            plans.append(
                EpisodePlan(
                    order=len(plans),
                    id=f"{root.id}.{grown[place]}",
                    group=root.group,
                    seed=root.seed,
                    entropy=(self._seed, 4, place, grown[place]),
                    options=root.options,
                    start=start,
                )
            )
            grown[place] += 1
        for (place, _, _), leaf in zip(cuts, self._play(plans), strict=True):
            self.trees[place].append(leaf)

    def _play(self, plans: Sequence[EpisodePlan]) -> list[Trajectory]:
        played = {}
        for episode, trajectory in play_episodes(
            self._policy, self._pool, plans, keeps_snapshots=True
        ):
            played[trajectory.id] = trajectory
            if _is_stateless(episode):
                start = episode.plan.start
                before = self._states[start.trajectory.id][: start.turns] if start else []
                self._states[trajectory.id] = before + episode.snapshots
        return [played[plan.id] for plan in plans]


def _inner_nodes(leaf: Trajectory) -> list[tuple[Trajectory, int]]:
    """Return the nodes that a leaf brought into its tree, the last one left out."""
    if not Valid().keeps(leaf):
        return []
    return [(leaf, turns) for turns in range(leaf.shared_turns + 1, len(leaf.turns))]


def _roots(tree: Sequence[Trajectory]) -> list[tuple[Trajectory, int]]:
    return [(tree[0], 0)] if tree[0].turns and Valid().keeps(tree[0]) else []


def _is_stateless(episode: RunningEpisode) -> bool:
    """Tell whether a snapshot of the environment holds all: no wrapper has a state of its own."""
    env: gym.Env[Any, Any] = episode.env
    while isinstance(env, gym.Wrapper):
        if not isinstance(env, _STATELESS):
            return False
        env = env.env
    return True
