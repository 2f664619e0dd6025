"""Every estimator against a loop written from its formula, and what all of them must hold."""

import math
import statistics
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paid import paid

from seekgym.agents import RandomAgent
from seekgym.agents.rollouts import generate_tails, generate_trees
from seekgym.agents.rollouts.filter import has_variance
from seekgym.agents.training.advantages import (
    ESTIMATORS,
    difference,
    dr_grpo,
    entity_aware,
    grpo,
    hop_grouped,
    reinforce_plus_plus,
    rloo,
    stratified,
    tail_branch,
    tree,
    turn_level,
)
from seekgym.agents.training.comparison import differ, uneven
from seekgym.corpora import ConfigurationError, CorpusError

EPSILON = 1e-6
ACROSS_GROUPS = {"reinforce_plus_plus", "hop_grouped"}
REWARDS = st.sampled_from([0.0, 0.0, 1.0, 0.1, 0.3, -0.5])
WORDS = st.sampled_from(["", "Ann", "who is ann bob?", "Annabel", "Bob's Ann", "Carl"])


@st.composite
def batches(draw):
    """Episodes of several groups, in any order; each may have branched off from another."""
    batch = []
    for number in range(draw(st.integers(1, 9))):
        group = draw(st.sampled_from(["", "a", "a", "b", "c"]))
        rewards = draw(st.lists(REWARDS, min_size=1, max_size=3))
        mates = [each for each in batch if group and each.group == group]
        parent = draw(st.sampled_from([None, *mates]))
        shared = 0
        if parent:
            shared = draw(st.integers(parent.shared_turns, len(parent.turns) - 1))
            rewards = [turn.reward for turn in parent.turns[:shared]] + rewards
        batch.append(
            paid(
                group,
                *rewards,
                id=f"{group}{number}",
                parent=parent.id if parent else "",
                shared=shared,
                agent=draw(st.sampled_from("xy")),
                finish=draw(st.sampled_from(["stop", "stop", "stop", "length"])),
                error=draw(st.sampled_from([None, None, None, "bad"])),
                says=draw(WORDS),
                answer=draw(st.sampled_from(["x", "x", None])),
                exact_match=float(draw(st.booleans())),
                searches=draw(st.integers(0, 1)),
                hops=draw(st.integers(1, 2)),
                entities=("Ann", "Bob", "Dora"),
                difference=draw(REWARDS),
            )
        )
    return draw(st.permutations(batch))


def mates_of(batch, one):
    return [each for each in batch if each.group == one.group] if one.group else [one]


def z(value, values, epsilon=EPSILON):
    if max(values) - min(values) <= 1e-9:
        return 0.0
    return (value - statistics.mean(values)) / (statistics.stdev(values) + epsilon)


def total(one):
    return sum(turn.reward for turn in one.turns)


def root_of(batch, one):
    while one.parent:
        one = next(each for each in batch if each.id == one.parent)
    return one.id


def slow_grpo(batch, one):
    return z(total(one), [total(each) for each in mates_of(batch, one)])


def slow_dr_grpo(batch, one):
    return total(one) - statistics.mean(total(each) for each in mates_of(batch, one))


def slow_rloo(batch, one):
    others = [total(each) for each in mates_of(batch, one) if each is not one]
    return total(one) - statistics.mean(others) if others else 0.0


def slow_reinforce_plus_plus(batch, one):
    rests = [slow_dr_grpo(batch, each) for each in batch]
    flat = max(rests) - min(rests) <= 1e-9
    return 0.0 if flat else slow_dr_grpo(batch, one) / (statistics.stdev(rests) + EPSILON)


def slow_stratified(batch, one):
    stratum = [
        total(each)
        for each in mates_of(batch, one)
        if each.outcome["searches"] == one.outcome["searches"]
    ]
    return 0.5 * z(total(one), stratum) + 0.5 * slow_grpo(batch, one)


def slow_hop_grouped(batch, one):
    same = [total(each) for each in batch if each.outcome["hops"] == one.outcome["hops"]]
    spread = math.sqrt(statistics.pvariance(same) + EPSILON)
    return (total(one) - statistics.mean(same)) / spread


def slow_entity_aware(batch, one):
    def overlong(each):
        return each.outcome["answer"] is None or any(t.finish == "length" for t in each.turns)

    def share(each):
        said = [
            "".join(c if c.isalnum() else " " for c in turn.action["arguments"]["query"].lower())
            for turn in each.turns
        ]
        return sum(any(name in text.split() for text in said) for name in ("ann", "bob", "dora"))

    def pay(each):
        most = max(share(mate) for mate in mates_of(batch, each))
        failed = overlong(each) or any(turn.error for turn in each.turns)
        right = each.outcome["exact_match"] == 1
        return total(each) + (0 if failed or right or not most else 0.3 * share(each) / most)

    pays = [pay(each) for each in mates_of(batch, one)]
    return 0.0 if overlong(one) else z(pay(one), pays)


def slow_difference(batch, one):
    same = [each for each in mates_of(batch, one) if each.agent == one.agent]
    worths = [each.outcome["difference"] for each in same]
    return one.outcome["difference"] - statistics.mean(worths)


def slow_tree(batch, one):
    leaves = [each for each in batch if root_of(batch, each) == root_of(batch, one)]
    return z(total(one), [total(each) for each in leaves]) + slow_grpo(batch, one)


def slow_turn_level(batch, one):
    def after(each, number):
        return sum(turn.reward for turn in each.turns[number:])

    return [
        z(after(one, t), [after(m, t) for m in mates_of(batch, one) if len(m.turns) > t])
        for t in range(len(one.turns))
    ]


def slow_tail_branch(batch, one):
    def cut(each):
        branches = [b.shared_turns for b in batch if b.parent and root_of(batch, b) == each.id]
        return each.shared_turns if each.parent else min([len(each.turns), *branches])

    def worth(each):
        return statistics.mean(total(m) for m in batch if root_of(batch, m) == each.id)

    mates = mates_of(batch, one)
    chains = [worth(each) for each in mates if not each.parent and cut(each)]
    endings = [total(each) for each in mates if len(each.turns) > cut(each)]
    before = z(worth(one), chains) if not one.parent and cut(one) else 0.0
    after = z(total(one), endings) if len(one.turns) > cut(one) else 0.0
    return [before] * cut(one) + [after] * (len(one.turns) - cut(one))


SLOW = {
    "grpo": slow_grpo,
    "dr_grpo": slow_dr_grpo,
    "rloo": slow_rloo,
    "reinforce_plus_plus": slow_reinforce_plus_plus,
    "stratified": slow_stratified,
    "turn_level": slow_turn_level,
    "tree": slow_tree,
    "tail_branch": slow_tail_branch,
    "hop_grouped": slow_hop_grouped,
    "entity_aware": slow_entity_aware,
    "difference": slow_difference,
}


def test_every_estimator_has_a_slow_loop():
    assert SLOW.keys() == ESTIMATORS.keys()


@pytest.mark.parametrize("name", ESTIMATORS)
@settings(max_examples=60, deadline=None)
@given(batches())
def test_it_is_what_its_formula_says(name, batch):
    found = ESTIMATORS[name](batch)
    assert len(found) == len(batch)
    for one, values in zip(batch, found, strict=True):
        assert values.dtype == np.float64
        assert values.shape == (len(one.turns),)
        np.testing.assert_allclose(values, SLOW[name](batch, one), atol=1e-8)


@pytest.mark.parametrize("name", ESTIMATORS)
@settings(max_examples=25, deadline=None)
@given(batches(), st.randoms())
def test_order_does_not_matter(name, batch, random):
    places = list(range(len(batch)))
    random.shuffle(places)
    found = ESTIMATORS[name](batch)
    again = ESTIMATORS[name]([batch[place] for place in places])
    for place, values in zip(places, again, strict=True):
        np.testing.assert_allclose(values, found[place], atol=1e-12)


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - ACROSS_GROUPS))
@settings(max_examples=25, deadline=None)
@given(batches())
def test_other_groups_do_not_matter(name, batch):
    found = ESTIMATORS[name](batch)
    alone = [place for place, each in enumerate(batch) if each.group == "a"]
    again = ESTIMATORS[name]([batch[place] for place in alone])
    for place, values in zip(alone, again, strict=True):
        np.testing.assert_array_equal(values, found[place])


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, -0.7])
@pytest.mark.parametrize("sizes", [(1,), (3,), (7, 7), (1, 1, 5)])
def test_what_was_paid_the_same_gets_exactly_nothing(name, reward, sizes):
    batch = [paid(f"g{g}", reward) for g, size in enumerate(sizes) for _ in range(size)]
    for values in ESTIMATORS[name](batch):
        assert values.tolist() == [0.0]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sums_that_differ_by_rounding_are_the_same(name):
    batch = [paid("g", 0.1, 0.2, 0.3), paid("g", 0.3, 0.2, 0.1), paid("g", 0.1, 0.3, 0.2)]
    assert len({each.total_reward for each in batch}) > 1
    found = ESTIMATORS[name](batch)
    if name != "turn_level":  # which compares what was paid when
        assert [values.tolist() for values in found] == [[0.0] * 3] * 3


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_comes_of_nothing(name):
    assert ESTIMATORS[name]([]) == []
    empty, other = ESTIMATORS[name]([paid("g"), paid("g", 1.0)])
    assert (empty.shape, other.shape) == ((0,), (1,))
    assert np.isfinite(other).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(REWARDS, min_size=1, max_size=3), min_size=1, max_size=5))
def test_the_filter_for_variance_drops_what_teaches_nothing(rewards):
    group = [paid("g", *each) for each in rewards]
    values = np.concatenate(grpo(group))
    assert has_variance(group) == bool(values.any())
    assert has_variance(group) == differ(np.array([each.total_reward for each in group]))
    assert uneven(group, grpo(group)) == (list(range(len(group))) if has_variance(group) else [])


def test_a_group_that_was_paid_alike_may_still_teach():
    alike = [paid("g", 0.0, says="Ann"), paid("g", 0.0, says="nobody"), paid("h", 0.0)]
    assert uneven(alike, grpo(alike)) == []
    assert uneven(alike, entity_aware(alike)) == [0, 1]
    early, late = paid("g", 1.0, 0.0), paid("g", 0.0, 1.0)
    assert uneven([early, late], turn_level([early, late])) == [0, 1]
    assert uneven([], []) == []


def test_the_better_episode_gets_more_in_every_estimator():
    worse = [paid("g", 0.0, id=str(n)) for n in range(3)]
    batch = [*worse, paid("g", 1.0, id="3", exact_match=1.0)]
    for name, estimator in ESTIMATORS.items():
        *others, best = (values[0] for values in estimator(batch))
        assert best > 0 > max(others), name


def test_values_worked_out_by_hand():
    batch = [paid("g", 1.0), paid("g", 0.0), paid("g", 0.0), paid("g", 0.0)]
    assert [v[0] for v in dr_grpo(batch)] == [0.75, -0.25, -0.25, -0.25]
    assert [v[0] for v in rloo(batch)] == pytest.approx([1.0, -1 / 3, -1 / 3, -1 / 3])
    assert [v[0] for v in grpo(batch, epsilon=0)] == pytest.approx([1.5, -0.5, -0.5, -0.5])
    two = [paid("g", 1.0), paid("h", 0.0), paid("i", 0.5)]
    bare = reinforce_plus_plus(two, group_baseline=False, epsilon=0)
    assert [v[0] for v in bare] == pytest.approx([1.0, -1.0, 0.0])
    hops = [paid("g", 1.0), paid("h", 0.0), paid("i", 9.0, hops=2)]
    assert [v[0] for v in hop_grouped(hops, epsilon=0.75)] == [0.5, -0.5, 0.0]


def test_strata_are_compared_with_themselves():
    batch = [
        paid("g", 1.0, searches=1),
        paid("g", 0.0, searches=1),
        paid("g", 1.0, searches=2),
        paid("g", 1.0, searches=2),
    ]
    half = math.sqrt(0.5)
    pure = stratified(batch, alpha=1.0, epsilon=0)
    assert [v[0] for v in pure] == pytest.approx([half, -half, 0.0, 0.0])
    for one, other in zip(stratified(batch, alpha=0.0), grpo(batch), strict=True):
        np.testing.assert_array_equal(one, other)
    odd = stratified(batch, strata=lambda each: None, alpha=1.0)
    np.testing.assert_allclose(odd, grpo(batch))


def test_a_turn_is_paid_for_what_came_after_it():
    batch = [paid("g", 1.0, 0.0), paid("g", 0.0, 0.0), paid("g", 0.0, 1.0)]
    third = 2 / math.sqrt(3) / 2
    first, none, last = turn_level(batch, epsilon=0)
    assert first.tolist() == pytest.approx([third, -third])
    assert none.tolist() == pytest.approx([-2 * third, -third])
    assert last.tolist() == pytest.approx([third, 2 * third])
    late = turn_level(batch, discount=0.5, epsilon=0)[2]
    assert late.tolist() == pytest.approx([0.0, 2 * third])
    pooled = np.concatenate(turn_level(batch, is_pooled=True, epsilon=0))
    assert pooled.tolist() == pytest.approx([1, -1, -1, -1, 1, 1] * np.full(6, math.sqrt(5 / 6)))


def test_the_longest_episode_has_no_mates_at_its_end():
    batch = [paid("g", 0.0, 0.0, 1.0), paid("g", 0.0)]
    assert turn_level(batch)[0][1:].tolist() == [0.0, 0.0]
    assert (turn_level(batch, is_pooled=True)[0][1:] > 0).all()


def test_leaves_of_a_tree_are_compared_with_each_other_and_with_all():
    batch = [
        paid("g", 0.0, 1.0, id="a"),
        paid("g", 0.0, 0.0, id="a1", parent="a", shared=1),
        paid("g", 0.0, 1.0, id="b"),
        paid("g", 0.0, 1.0, id="b1", parent="b", shared=1),
    ]
    half = math.sqrt(0.5)
    found = [v[0] for v in tree(batch, epsilon=0)]
    assert found == pytest.approx([0.5 + half, -1.5 - half, 0.5, 0.5])


def test_a_tail_is_compared_with_tails_and_the_turns_before_with_chains():
    batch = [
        paid("g", 0.0, 0.0, 1.0, id="a"),
        paid("g", 0.0, 0.0, 0.0, id="a1", parent="a", shared=2),
        paid("g", 0.0, 0.0, id="b"),
        paid("g", 0.0, 0.0, 0.0, id="b1", parent="b", shared=1),
    ]
    half = math.sqrt(0.5)
    a, a1, b, b1 = (v.tolist() for v in tail_branch(batch, epsilon=0))
    assert a == pytest.approx([half, half, 1.5])
    assert a1 == pytest.approx([0.0, 0.0, -0.5])
    assert b == pytest.approx([-half, -0.5])
    assert b1 == pytest.approx([0.0, -0.5, -0.5])


@pytest.mark.parametrize("estimator", [tree, tail_branch])
def test_half_a_tree_is_refused(estimator):
    with pytest.raises(CorpusError, match="whole groups"):
        estimator([paid("g", 1.0, id="a1", parent="a", shared=0)])


def test_a_wrong_episode_is_paid_for_the_entities_it_named():
    both = ("Ann Lee", "Bob")
    batch = [
        paid("g", 0.0, says="ann LEE, bob", entities=both),
        paid("g", 0.0, says="ann lee", entities=both),
        paid("g", 0.0, says="Ann Bobby Lee", entities=both),
        paid("g", 1.0, says="bob", entities=both, exact_match=1.0),
    ]
    pays = [0.3, 0.15, 0.0, 1.0]
    for one, pay in zip(entity_aware(batch), pays, strict=True):
        assert one[0] == pytest.approx(z(pay, pays))
    text = replace(batch[0], turns=(replace(batch[0].turns[0], action="<think>Bob?</think>"),))
    assert entity_aware([text, *batch[1:]])[0][0] == pytest.approx(z(0.3, [0.3, 0.3, 0.0, 1.0]))


def test_overlong_episodes_count_and_are_not_trained_on():
    batch = [
        paid("g", 0.0, says="Ann", answer=None),
        paid("g", 0.0, says="Ann", finish="length"),
        paid("g", 0.0, says="Ann", error="bad"),
        paid("g", 0.0, says="Ann"),
    ]
    pays = [0.0, 0.0, 0.0, 0.3]
    found = [v[0] for v in entity_aware(batch)]
    assert found == pytest.approx([0.0, 0.0, z(0.0, pays), z(0.3, pays)])
    found = [v[0] for v in entity_aware(batch, trains_overlong=True)]
    assert found == pytest.approx([z(pay, pays) for pay in pays])


def test_each_agent_of_a_team_is_compared_with_itself():
    batch = [
        paid("g", 1.0, agent="searcher_0", difference=1.0),
        paid("g", 1.0, agent="searcher_1", difference=0.0),
        paid("g", 0.0, agent="searcher_0", difference=0.0),
        paid("g", 0.0, agent="searcher_1", difference=0.0),
    ]
    assert [v[0] for v in difference(batch)] == [0.5, 0.0, -0.5, 0.0]
    assert [v[0] for v in difference(batch, has_baseline=False)] == [1.0, 0.0, 0.0, 0.0]
    doubled = difference(batch, worth=lambda each: 2 * each.outcome["difference"])
    assert [v[0] for v in doubled] == [1.0, 0.0, -1.0, 0.0]


@pytest.mark.parametrize(
    ("estimator", "key"),
    [
        (stratified, "searches"),
        (hop_grouped, "hops"),
        (entity_aware, "entities"),
        (difference, "difference"),
    ],
)
def test_what_an_outcome_lacks_is_asked_for(estimator, key):
    with pytest.raises(ConfigurationError, match=rf"has no outcome\['{key}'\].*pass \w+="):
        estimator([paid("g", 1.0, **{key: None})])


def test_options_out_of_range_are_refused():
    with pytest.raises(ConfigurationError, match="alpha must be from 0 to 1"):
        stratified([], alpha=1.5)
    with pytest.raises(ConfigurationError, match="discount must be from 0 to 1"):
        turn_level([], discount=-0.1)


def test_rollouts_have_what_estimators_ask_for():
    from hamlets import hamlets
    from wandering import WanderingPolicy

    for play in (generate_trees, generate_tails):
        batch = play(WanderingPolicy(), hamlets(), groups=4, seed=3)
        assert {each.outcome["hops"] for each in batch} <= {1, 2, 3}
        assert all(each.outcome["entities"] for each in batch)
        for name in ESTIMATORS.keys() - {"difference"}:
            found = ESTIMATORS[name](batch)
            assert all(np.isfinite(values).all() for values in found)
            assert [len(values) for values in found] == [len(each.turns) for each in batch]


def test_entities_are_the_titles_of_the_evidence():
    import gymnasium as gym

    from seekgym.agents.rollouts import play

    env = gym.make("seekgym/QA-v0")
    played = play(env, RandomAgent(env), seed=0)
    task = env.unwrapped.all_tasks[played.task_id]
    titles = tuple(env.unwrapped.corpus[document].title for document in task.evidence)
    assert played.outcome["entities"] == titles
    assert played.outcome["hops"] == task.hops


def test_advantages_do_without_torch():
    code = "import sys, seekgym.agents.training.advantages; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
