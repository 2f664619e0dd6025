from collections import Counter
from dataclasses import replace

import pytest
from hamlets import hamlets
from hypothesis import given, settings
from hypothesis import strategies as st
from wandering import WanderingPolicy, lines

from seekgym.agents.rollouts import (
    Allocation,
    Budget,
    ByDifficulty,
    Correct,
    Cost,
    EpisodePlan,
    Generate,
    GroupVariance,
    Limit,
    Reply,
    Resume,
    RunningEpisode,
    Take,
    UntilRight,
    UntilVariance,
    generate,
    generate_groups,
    read_trajectories,
    replay,
    resume,
    total_cost,
    write_trajectories,
)
from seekgym.corpora import ConfigurationError

SEARCH = {"name": "search", "arguments": {"query": "Arl"}}


def played(policy, **arguments):
    return generate(policy, hamlets(), **({"episodes": 12, "group_size": 3} | arguments))


def running(budget):
    plan = EpisodePlan(0, "0", "0", 0, (0,), budget=budget)
    return RunningEpisode(hamlets(), plan, agent="test")


@pytest.mark.parametrize("name", ["turns", "calls", "tokens"])
def test_a_budget_of_nothing_is_refused(name):
    with pytest.raises(ConfigurationError, match=f"{name} must be a whole number of at least 1"):
        Budget(**{name: 0})


def test_what_is_spent_is_counted_in_turns_calls_and_tokens():
    wrong = {"name": "read", "arguments": {"document_id": "nowhere"}}
    episode = running(Budget(calls=2))
    sent = [episode.send(Reply(action)) for action in (SEARCH, wrong, SEARCH)]
    assert [each is None for each in sent] == [False, False, True]
    assert not episode.may_go_on
    assert not episode.is_over
    assert episode.finish().is_suspended
    with pytest.raises(ConfigurationError, match="has spent its budget"):
        episode.send(Reply(SEARCH))
    by_span = running(Budget(tokens=10))
    assert by_span.send(Reply(SEARCH, span=(0, 5, 14))) is not None
    assert by_span.send(Reply(SEARCH, span=(0, 20, 21))) is None
    by_count = running(Budget(tokens=10))
    assert by_count.send(Reply(SEARCH, tokens=9)) is not None
    assert by_count.send(Reply(SEARCH, tokens=1)) is None


def test_an_episode_that_ends_with_its_budget_is_over_and_not_suspended():
    episode = running(Budget(turns=1))
    assert episode.send(Reply({"name": "answer", "arguments": {"text": "Bet"}})) is None
    assert not episode.finish().is_suspended


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**31), st.sampled_from([None, "hermes"]))
def test_suspended_episodes_are_played_on_to_the_end(turns, seed, protocol):
    policy = WanderingPolicy(protocol, cuts=0.1)
    budget = Budget(turns=turns)
    cut = played(policy, seed=seed, budget=budget)
    whole = played(policy, seed=seed)
    for one, other in zip(cut, whole, strict=True):
        assert one.turns == other.turns[:turns]
        assert one.is_suspended == (len(other.turns) > turns)
    done = list(Resume(policy, hamlets(), seed=seed, budget=budget)(cut))
    assert [each.id for each in done] == [each.id for each in cut]
    for one, other in zip(done, cut, strict=True):
        assert not one.is_suspended
        assert (one.parent, one.shared_turns) == (other.parent, other.shared_turns) == ("", 0)
        assert one.turns[: len(other.turns)] == other.turns
        assert one.segments[0].ids[: len(other.segments[0].ids)] == other.segments[0].ids
        if protocol is None:
            assert replay(one, hamlets()) == []


def test_what_was_suspended_goes_on_from_its_file(tmp_path):
    policy = WanderingPolicy()
    cut = played(policy, budget=Budget(turns=2))
    write_trajectories(cut, tmp_path / "t.jsonl")
    again = list(read_trajectories(tmp_path / "t.jsonl"))
    assert any(each.is_suspended for each in cut)
    assert lines(resume(policy, again, hamlets())) == lines(resume(policy, cut, hamlets()))


def test_a_sitting_is_no_longer_than_its_budget_and_may_be_the_last():
    policy = WanderingPolicy(stops=0.05)
    cut = played(policy, budget=Budget(turns=1))
    once = list(Resume(policy, hamlets(), budget=Budget(turns=2), sittings=1)(cut))
    assert max(len(each.turns) for each in once) == 3
    assert any(each.is_suspended for each in once)
    draws = [
        resume(policy, cut, hamlets(), seed=seed, budget=Budget(turns=1)) for seed in (0, 0, 1)
    ]
    assert lines(draws[0]) == lines(draws[1]) != lines(draws[2])


def test_suspended_ones_of_two_rollouts_are_not_mixed_up():
    cut = played(WanderingPolicy(stops=0.0), budget=Budget(turns=1))
    with pytest.raises(ConfigurationError, match="have the same id"):
        resume(WanderingPolicy(), cut + cut, hamlets())


def test_a_limit_gives_whole_groups_within_the_budget():
    source = Generate(WanderingPolicy(), hamlets(), episodes=60, group_size=3)
    costs = Cost(turns=40, calls=38, tokens=1_000)
    for name in ("turns", "calls", "tokens"):
        limit = getattr(costs, name)
        kept = list(source | Limit(Budget(**{name: limit})))
        more = list(source | Take(len(kept) // 3 + 1))
        assert 0 < getattr(total_cost(kept), name) <= limit < getattr(total_cost(more), name)
        assert set(Counter(each.group for each in kept).values()) == {3}


def test_dynamic_sampling_fills_a_batch_of_groups_that_teach():
    source = Generate(WanderingPolicy(), hamlets(), episodes=400, group_size=4)
    kept = list(source | GroupVariance() | Take(5))
    groups = Counter(each.group for each in kept)
    assert len(groups) == 5
    for group in groups:
        rewards = {each.total_reward for each in kept if each.group == group}
        assert len(rewards) > 1
    with pytest.raises(ConfigurationError, match="groups must be"):
        Take(0)


def grown(allocation, **arguments):
    return generate_groups(
        WanderingPolicy(), hamlets(), groups=6, allocation=allocation, seed=2, **arguments
    )


def sizes(trajectories):
    return [size for _, size in sorted(Counter(each.group for each in trajectories).items())]


def members(trajectories, group):
    return [each for each in trajectories if each.group == group]


def test_groups_grow_until_they_have_variance():
    kept = grown(UntilVariance(first=2, step=2, most=8))
    for group in sorted({each.group for each in kept}):
        rewards = [each.total_reward for each in members(kept, group)]
        has_variance = len(set(rewards)) > 1
        assert has_variance or len(rewards) == 8
        assert len(rewards) == 2 or len(set(rewards[:-2])) == 1
    assert len(set(sizes(kept))) > 1
    assert len({each.id for each in kept}) == len(kept)


def test_groups_grow_until_enough_are_right():
    kept = grown(UntilRight(right=1, first=1, step=1, most=5))
    for group in sorted({each.group for each in kept}):
        right = [Correct().keeps(each) for each in members(kept, group)]
        assert right[-1] or len(right) == 5
        assert not any(right[:-1])


def test_members_go_where_success_is_middling_and_none_where_all_is_solved():
    right, wrong = played(WanderingPolicy(), episodes=1, group_size=1) * 2
    right = replace(right, outcome={"exact_match": 1.0})
    wrong = replace(wrong, outcome={"exact_match": 0.0})
    groups = [[right] * k + [wrong] * (4 - k) for k in range(5)]
    shares = ByDifficulty(extra=20, first=4, most=12).more(groups)
    assert sum(shares) == 20
    assert shares[4] == 0
    assert shares[2] == max(shares) > shares[0] > 0
    assert shares[1] == shares[3]
    assert ByDifficulty(extra=90, first=4, most=12).more(groups) == [8, 8, 8, 8, 0]
    assert ByDifficulty(extra=20).more([[*groups[0], wrong]]) == [0]


def test_a_rollout_with_allocations_is_the_same_however_it_is_played():
    allocation = ByDifficulty(extra=9, first=2, most=8)
    kept = grown(allocation)
    assert len(kept) == 6 * 2 + 9
    again = generate_groups(
        WanderingPolicy(at_once=1), hamlets(), groups=6, allocation=allocation, seed=2
    )
    assert lines(again) == lines(kept)
    first = generate(WanderingPolicy(), hamlets(), episodes=12, group_size=2, seed=2)
    assert [each.task_id for each in first[::2]] == [
        members(kept, str(group))[0].task_id for group in range(6)
    ]


def test_a_wrong_allocation_is_refused():
    class Wrong(Allocation):
        first = 1

        def more(self, groups):
            return [1]

    with pytest.raises(ConfigurationError, match="for 6 groups"):
        grown(Wrong())
