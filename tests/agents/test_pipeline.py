from collections import Counter
from itertools import count

import pytest
from hamlets import hamlets
from hypothesis import given, settings
from hypothesis import strategies as st
from wandering import WanderingPolicy, lines

from seekgym.agents import IterativeAgent
from seekgym.agents.policy import AgentPolicy
from seekgym.agents.rollouts import (
    Budget,
    CausallyGrounded,
    Correct,
    Deduplicated,
    Finished,
    Generate,
    GroupVariance,
    MinReward,
    NoLeak,
    Pipeline,
    Source,
    Take,
    Valid,
    WellFormed,
    WholeGroups,
    generate,
    groups_of,
    read_trajectories,
    replay,
    write_trajectories,
)
from seekgym.agents.rollouts.pipeline import group_key
from seekgym.corpora import ConfigurationError

PROTOCOLS = (None, "search-r1", "hermes", "react")
SINGLE = (
    Valid(),
    Finished(),
    MinReward(1.0),
    Correct(),
    Correct("f1", 0.5),
    WellFormed(),
    NoLeak(),
    CausallyGrounded(),
)
GROUPED = (GroupVariance(), WholeGroups(WellFormed(), least=2), WholeGroups(CausallyGrounded()))


@st.composite
def wanderers(draw):
    """Give any policy of the kind, with the number of episodes that it plays at once."""
    share = st.sampled_from([0.0, 0.2])
    return WanderingPolicy(
        draw(st.sampled_from(PROTOCOLS)),
        at_once=draw(st.integers(1, 9)),
        cuts=draw(share),
        odd=draw(share),
        stops=draw(st.sampled_from([0.1, 0.4])),
    )


def played(policy, seed, **settings):
    return generate(policy, hamlets(), episodes=12, group_size=3, seed=seed, **settings)


@settings(max_examples=25, deadline=None)
@given(wanderers(), st.integers(0, 2**31), st.sampled_from([None, Budget(turns=2)]))
def test_stages_give_what_they_took_untouched_and_in_order(policy, seed, budget):
    trajectories = played(policy, seed, budget=budget)
    before = lines(trajectories)
    sizes = Counter(map(group_key, trajectories))
    for stage in (*SINGLE, *GROUPED, Deduplicated()):
        given_ = list(stage(trajectories))
        places = [next(i for i, each in enumerate(trajectories) if each is one) for one in given_]
        assert places == sorted(set(places))
        if stage in GROUPED:
            assert all(len(group) == sizes[group_key(group[0])] for group in groups_of(given_))
    assert lines(trajectories) == before


@settings(max_examples=25, deadline=None)
@given(wanderers(), st.integers(0, 2**31))
def test_the_mask_is_what_was_sampled_and_every_field_survives_the_file(
    tmp_path_factory, policy, seed
):
    trajectories = played(policy, seed, budget=Budget(turns=4))
    path = tmp_path_factory.mktemp("rollout") / "t.jsonl"
    write_trajectories(trajectories, path)
    again = list(read_trajectories(path))
    assert lines(again) == lines(trajectories)
    for one, other in zip(trajectories, again, strict=True):
        assert other.segments == one.segments
        assert [turn.span for turn in other.turns] == [turn.span for turn in one.turns]
        [segment] = one.segments
        sampled = {place for turn in one.turns for place in range(*turn.span[1:])}
        assert {place for place, bit in enumerate(segment.mask) if bit} == sampled
        assert all(
            log_prob == 0.0 or place in sampled for place, log_prob in enumerate(segment.log_probs)
        )


@settings(max_examples=15, deadline=None)
@given(wanderers(), st.integers(0, 2**31))
def test_an_answer_is_never_shown_before_a_document_holds_it(policy, seed):
    for trajectory in played(policy, seed, budget=Budget(turns=6)):
        golds = hamlets().tasks[trajectory.task_id].answers
        [segment] = trajectory.segments
        shown_from = len(segment.ids)
        for turn, following in zip(trajectory.turns, [*trajectory.turns[1:], None], strict=True):
            if any(gold in turn.observation for gold in golds):
                assert turn.documents
                shown_from = turn.span[2]
                break
            shown_from = following.span[1] if following else len(segment.ids)
        given_ids = [
            i for i, bit in zip(segment.ids[:shown_from], segment.mask, strict=False) if not bit
        ]
        assert not any(gold.encode() in bytes(given_ids) for gold in golds)


@settings(max_examples=10, deadline=None)
@given(wanderers(), st.integers(0, 2**31))
def test_what_is_played_does_not_depend_on_how_many_play_at_once(policy, seed):
    alone = WanderingPolicy(policy.protocol, at_once=1)
    alone.cuts, alone.odd, alone.stops = policy.cuts, policy.odd, policy.stops
    assert lines(played(policy, seed)) == lines(played(alone, seed))


def test_a_pipeline_composes_by_bar_and_list_and_counts():
    source = Generate(WanderingPolicy(), hamlets(), episodes=24, group_size=4, seed=1)
    by_bar = source | Valid() | GroupVariance() | Correct()
    by_list = Pipeline([source, Pipeline([Valid(), GroupVariance()]), Correct()])
    kept, report = by_bar.run()
    assert lines(by_list()) == lines(kept)
    assert [row.stage for row in report.rows] == ["Generate", "Valid", "GroupVariance", "Correct"]
    assert report.rows[0][1:] == (0, 24)
    assert report.rows[-1].given == len(kept) > 0
    assert all(row.given < row.taken for row in report.rows[2:])
    assert report.table.splitlines()[1].split() == ["Generate", "0", "24"]
    assert by_bar.run().report == report


def test_generate_as_a_stage_is_generate():
    policy = WanderingPolicy()
    stage = Generate(policy, hamlets(), episodes=8, group_size=2, seed=5)
    assert lines(stage()) == lines(generate(policy, hamlets(), episodes=8, group_size=2, seed=5))


def test_nothing_more_is_played_than_is_asked_for():
    begun = count()

    class Counting(WanderingPolicy):
        def play(self, episodes):
            return super().play(each for each in episodes if next(begun) >= 0)

    source = Generate(Counting(at_once=2), hamlets(), episodes=400, group_size=4)
    kept = list(source | Take(3))
    assert len(kept) == 12
    assert next(begun) < 24


def test_a_plain_function_is_a_stage():
    def reverse(trajectories):
        return reversed(list(trajectories))

    source = Source(lambda: played(WanderingPolicy(), 0))
    kept, report = (source | reverse).run()
    assert lines(kept) == lines(played(WanderingPolicy(), 0))[::-1]
    assert report.rows[1].stage == "reverse"


def test_torn_groups_are_refused():
    trajectories = played(WanderingPolicy(), 0)
    torn = trajectories[:2] + trajectories[3:6] + trajectories[2:3]
    with pytest.raises(ConfigurationError, match="goes on after another one"):
        list(GroupVariance()(torn))


def test_an_agent_plays_within_a_budget_and_is_played_again():
    policy = AgentPolicy(IterativeAgent)
    whole = generate(policy, "seekgym/QA-v0", episodes=3, seed=1)
    assert all(replay(trajectory) == [] for trajectory in whole)
    cut = generate(policy, "seekgym/QA-v0", episodes=3, seed=1, budget=Budget(turns=1))
    assert [each.is_suspended for each in cut] == [len(each.turns) > 1 for each in whole]
    assert all(each.turns == other.turns[:1] for each, other in zip(cut, whole, strict=True))
