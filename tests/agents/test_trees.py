from dataclasses import replace

import gymnasium as gym
import pytest
from hamlets import HamletEnv, hamlets
from hypothesis import given, settings
from hypothesis import strategies as st
from wandering import WanderingPolicy, lines

from seekgym.agents.rollouts import (
    Budget,
    Generate,
    Limit,
    TailShape,
    TreeShape,
    generate_tails,
    generate_trees,
    replay,
    total_cost,
    tree_of,
    turn_owners,
)
from seekgym.corpora import ConfigurationError, CorpusError

SHAPE = TreeShape(trees=2, expansions=2, rounds=2)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 2**31),
    st.builds(TreeShape, st.integers(1, 3), st.integers(1, 3), st.integers(0, 2)),
    st.integers(1, 9),
)
def test_every_leaf_replays_and_shares_its_first_turns(seed, shape, at_once):
    policy = WanderingPolicy(at_once=at_once)
    leaves = generate_trees(policy, hamlets(), groups=3, shape=shape, seed=seed)
    assert len(leaves) == 3 * shape.leaves
    by_id = {leaf.id: leaf for leaf in leaves}
    assert len(by_id) == len(leaves)
    for leaf in leaves:
        assert replay(leaf, hamlets()) == []
        if leaf.parent:
            parent = by_id[leaf.parent]
            assert (leaf.group, leaf.task_id, leaf.seed) == (
                parent.group,
                parent.task_id,
                parent.seed,
            )
            assert leaf.shared_turns < len(parent.turns)
            assert leaf.turns[: leaf.shared_turns] == parent.turns[: leaf.shared_turns]
            start = parent.turns[leaf.shared_turns].span[1]
            for name in ("ids", "mask", "log_probs"):
                mine, theirs = (getattr(each.segments[0], name) for each in (leaf, parent))
                assert mine[:start] == theirs[:start]


@pytest.mark.parametrize("protocol", [None, "search-r1", "hermes", "react"])
def test_trees_in_a_registered_environment_replay_in_a_fresh_one(protocol):
    leaves = generate_trees(WanderingPolicy(protocol), "seekgym/QA-v0", groups=3, shape=SHAPE)
    for leaf in leaves:
        assert replay(leaf) == []


def test_trees_do_not_depend_on_how_many_play_at_once():
    grown = [
        lines(generate_trees(WanderingPolicy(at_once=n), hamlets(), groups=4, shape=SHAPE, seed=1))
        for n in (1, 3, 50)
    ]
    assert grown[0] == grown[1] == grown[2]
    other = generate_trees(WanderingPolicy(), hamlets(), groups=4, shape=SHAPE, seed=2)
    assert lines(other) != grown[0]


def test_branches_do_not_play_the_shared_turns_again():
    HamletEnv.steps = 0
    leaves = generate_trees(WanderingPolicy(), hamlets(), groups=5, shape=SHAPE)
    assert HamletEnv.steps == total_cost(leaves).turns
    assert HamletEnv.steps < sum(len(leaf.turns) for leaf in leaves)


def test_a_wrapper_with_a_state_of_its_own_is_played_again_from_the_reset():
    env = gym.wrappers.TimeLimit(hamlets(), max_episode_steps=4)
    HamletEnv.steps = 0
    leaves = generate_trees(WanderingPolicy(stops=0.05), env, groups=5, shape=SHAPE)
    assert HamletEnv.steps == sum(len(leaf.turns) for leaf in leaves)
    assert max(len(leaf.turns) for leaf in leaves) == 4
    for leaf in leaves:
        assert replay(leaf, gym.wrappers.TimeLimit(hamlets(), max_episode_steps=4)) == []


def test_a_tree_gives_more_trajectories_than_chains_for_the_same_budget():
    policy = WanderingPolicy(stops=0.2)
    HamletEnv.steps = 0
    leaves = generate_trees(policy, hamlets(), groups=40, shape=SHAPE)
    budget = HamletEnv.steps
    chains = list(Generate(policy, hamlets(), episodes=2_000, seed=1) | Limit(Budget(turns=budget)))
    ratio = len(leaves) / len(chains)
    print(f"{budget} calls: {len(leaves)} leaves, {len(chains)} chains, ratio {ratio:.2f}")
    assert total_cost(chains).turns <= budget
    assert ratio > 1.2


def test_owners_of_turns_name_the_nodes_of_the_tree():
    leaves = generate_trees(WanderingPolicy(), hamlets(), groups=4, shape=SHAPE)
    owners = turn_owners(leaves)
    nodes = {}
    for leaf in leaves:
        assert len(owners[leaf.id]) == len(leaf.turns)
        for place, owner in enumerate(owners[leaf.id]):
            # a node is one turn that was played: all that pass through it agree on it
            assert nodes.setdefault((owner, place), leaf.turns[place]) == leaf.turns[place]
    assert len(nodes) == total_cost(leaves).turns
    trees = tree_of(leaves)
    assert {leaf.id for leaf in leaves if not leaf.parent} == set(trees.values())
    assert all(trees[leaf.id].split("-")[0] == leaf.group for leaf in leaves)
    with pytest.raises(CorpusError, match="does not come before it"):
        turn_owners(leaves[::-1])


def test_branches_differ_from_their_parents():
    leaves = generate_trees(WanderingPolicy(stops=0.1), hamlets(), groups=5, shape=SHAPE)
    by_id = {leaf.id: leaf for leaf in leaves}
    branches = [leaf for leaf in leaves if leaf.parent]
    same = [leaf for leaf in branches if leaf.turns == by_id[leaf.parent].turns]
    assert len(same) < len(branches) / 4


def test_branches_of_one_node_draw_differently():
    shape = TailShape(chains=2, branches=3, tail=3)
    leaves = generate_tails(WanderingPolicy(stops=0.1), hamlets(), groups=5, shape=shape)
    siblings = {}
    for leaf in leaves:
        if leaf.parent:
            siblings.setdefault(leaf.parent, []).append([turn.action for turn in leaf.turns])
    alike = [each for each in siblings.values() if each[0] == each[1] == each[2]]
    assert len(siblings) == 10
    assert len(alike) < 4


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 3))
def test_tails_branch_near_the_end_and_replay(seed, branches, tail):
    shape = TailShape(chains=2, branches=branches, tail=tail)
    leaves = generate_tails(WanderingPolicy(), hamlets(), groups=3, shape=shape, seed=seed)
    assert len(leaves) == 3 * shape.leaves
    by_id = {leaf.id: leaf for leaf in leaves}
    for leaf in leaves:
        assert replay(leaf, hamlets()) == []
        if leaf.parent:
            turns = len(by_id[leaf.parent].turns)
            cut = leaf.shared_turns
            assert turns - tail <= cut < turns
            assert cut >= min(1, turns - 1)
    cuts = {(leaf.parent, leaf.shared_turns) for leaf in leaves if leaf.parent}
    assert len(cuts) == 6  # the branches of a chain share one cut
    again = generate_tails(WanderingPolicy(at_once=1), hamlets(), groups=3, shape=shape, seed=seed)
    assert lines(again) == lines(leaves)


class Failing(WanderingPolicy):
    """Gives every other episode up, as a policy whose server is gone does."""

    def play(self, episodes):
        for trajectory in super().play(episodes):
            if int(trajectory.id.rsplit("-")[-1][-1]) % 2:
                lost = {**trajectory.outcome, "failure": "policy", "valid": False}
                trajectory = replace(trajectory, outcome=lost)
            yield trajectory


def test_nothing_branches_off_from_an_episode_that_was_lost():
    leaves = generate_trees(Failing(), hamlets(), groups=4, shape=SHAPE)
    lost = {leaf.id for leaf in leaves if leaf.outcome["failure"]}
    assert lost
    assert not lost & {leaf.parent for leaf in leaves}
    tails = generate_tails(Failing(), hamlets(), groups=4, shape=TailShape(chains=2))
    assert len(tails) == 4 * 3


@pytest.mark.parametrize(
    ("shape", "wrong"),
    [
        (TreeShape, {"trees": 0}),
        (TreeShape, {"expansions": 0}),
        (TreeShape, {"rounds": -1}),
        (TailShape, {"chains": 0}),
        (TailShape, {"branches": 0}),
        (TailShape, {"tail": 0}),
    ],
)
def test_shapes_out_of_range_are_refused(shape, wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        shape(**wrong)
