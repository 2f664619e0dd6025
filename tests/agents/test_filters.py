"""Each filter against trajectories that are wrong in exactly one way."""

from dataclasses import replace

import gymnasium as gym
import pytest
from hamlets import hamlets
from wandering import ARGUMENTS, WRITTEN

from seekgym.agents.rollouts import (
    CausallyGrounded,
    Correct,
    Deduplicated,
    EpisodePlan,
    Finished,
    GroupVariance,
    MinReward,
    NoLeak,
    Reply,
    RunningEpisode,
    Turn,
    Valid,
    WellFormed,
    WholeGroups,
)
from seekgym.agents.rollouts.calls import calls_of
from seekgym.envs.wrappers import TextProtocol


def say(name, value):
    return {"name": name, "arguments": {ARGUMENTS[name]: value}}


def script(*actions, env=None, finish="stop", failure=None):
    """Play actions in the world of hamlets; the question is who founded Arl, the answer Bet."""
    plan = EpisodePlan(0, "0-0", "0", 0, (0,), {} if env else {"task": "t0"})
    episode = RunningEpisode(env or hamlets(), plan, agent="script")
    for action in actions:
        episode.send(Reply(action, finish=finish))
    return episode.finish(failure=failure)


@pytest.fixture(scope="module")
def good():
    return script(say("search", "Arl"), say("read", "d0"), say("answer", "Bet"))


def test_a_good_trajectory_passes_every_filter(good):
    for each in (
        Valid(),
        Finished(),
        MinReward(1.0),
        Correct(),
        WellFormed(),
        NoLeak(),
        CausallyGrounded(),
    ):
        assert each.keeps(good), each.name


def test_valid_drops_what_failed(good):
    assert not Valid().keeps(script(say("search", "Arl"), failure="out of memory"))
    lost = replace(good, outcome={**good.outcome, "failure": "infrastructure", "valid": False})
    assert not Valid().keeps(lost)


def test_finished_drops_what_is_suspended():
    assert not Finished().keeps(script(say("search", "Arl")))


def test_rewards_and_scores_are_compared():
    wrong = script(say("search", "Arl"), say("answer", "Arl"))
    assert not MinReward(0.5).keeps(wrong)
    assert MinReward(0.0).keeps(wrong)
    assert not Correct().keeps(wrong)
    assert not Correct("f1", 0.1).keeps(script(say("search", "Arl")))


@pytest.mark.parametrize(
    "actions",
    [
        (say("search", "Arl"), say("read", "d9"), say("answer", "Bet")),
        (say("search", ""), say("answer", "Bet")),
        ("Bet", say("answer", "Bet")),
    ],
)
def test_well_formed_drops_wrong_calls(actions):
    assert not WellFormed().keeps(script(*actions))


def test_well_formed_drops_cut_off_replies():
    trajectory = script(say("search", "Arl"), finish="length")
    assert trajectory.turns[0].error == "cut_off"
    assert not WellFormed().keeps(trajectory)
    assert not WellFormed().keeps(
        replace(trajectory, turns=(replace(trajectory.turns[0], error=None),))
    )


def test_well_formed_looks_at_the_text_around_a_call():
    env = TextProtocol(gym.make("seekgym/QA-v0"), "search-r1")
    right = script("<think>so</think><search>Lisbon</search>", env=env)
    assert WellFormed().keeps(right)
    assert not WellFormed().keeps(script("so <search>Lisbon</search>", env=env))
    assert not WellFormed().keeps(script("<think>so</think><search>a</search> more", env=env))


@pytest.mark.parametrize("protocol", [None, *WRITTEN])
def test_calls_are_read_in_every_protocol(protocol):
    env = gym.make("seekgym/QA-v0")
    spoken = [say("search", "Lisbon"), say("answer", "x y")]
    if protocol is not None:
        env = TextProtocol(env, protocol)
        spoken = [WRITTEN[protocol](each["name"], *each["arguments"].values()) for each in spoken]
    first, *_, last = calls_of(script(*spoken[:1], "\n", *spoken[1:], env=env))
    assert (first.name, *first.arguments.values()) == ("search", "Lisbon")
    assert (last.name, *last.arguments.values()) == ("answer", "x y")


def test_no_leak_drops_an_answer_in_the_question(good):
    leaking = replace(good, question="Who founded Arl, was it Bet?")
    assert not NoLeak().keeps(leaking)
    assert NoLeak(question=False).keeps(leaking)
    assert NoLeak().keeps(replace(good, question="Who founded Arl for a better life?"))


def test_no_leak_drops_right_answers_without_evidence(good):
    guess = script(say("search", "Cor"), say("answer", "Bet"))
    assert not NoLeak().keeps(guess)
    assert NoLeak(closed_book=False).keeps(guess)
    unknown = {**guess.outcome, "evidence_recall": None}
    assert NoLeak().keeps(replace(guess, outcome=unknown))
    bare = script(say("answer", "Bet"))
    assert not NoLeak().keeps(replace(bare, outcome={**bare.outcome, "evidence_recall": None}))
    assert NoLeak().keeps(script(say("answer", "Dun")))


def test_no_leak_drops_copies_of_the_question(good):
    shown = replace(good.turns[0], observation="Q: who founded ARL? A: Bet")
    copied = replace(good, turns=(shown, *good.turns[1:]))
    assert not NoLeak().keeps(copied)
    assert NoLeak(overlap=None).keeps(copied)
    long = replace(good, question=" ".join(f"w{number}" for number in range(20)))
    for length, is_kept in ((12, True), (13, False)):
        part = " ".join(f"w{number}" for number in range(5, 5 + length))
        assert NoLeak().keeps(replace(long, turns=(Turn({}, part, 0.0, {}),))) == is_kept


@pytest.mark.parametrize(
    ("actions", "is_grounded"),
    [
        ((say("search", "founder of Arl"), say("answer", "Bet")), True),
        ((say("search", "Dun Arl"), say("answer", "Bet")), False),  # a name it had not seen
        ((say("search", "Arl 1900"),), False),  # a number it had not seen
        ((say("read", "d0"), say("answer", "Bet")), False),  # an id it had not seen
        ((say("search", "Arl"), say("read", "[d0]"), say("answer", "bet")), True),
        ((say("answer", "Bet"),), False),
        ((say("answer", "unknown"),), True),
        ((say("search", "Arl"), say("answer", "3 Bet")), False),
        # as an address it was not seen, though each of its words was
        ((say("search", "Arl"), say("search", "Arl/Bet")), False),
        # an error repeats what the agent wrote: that does not count as seen
        ((say("read", "Dun"), say("search", "Dun")), False),
    ],
)
def test_grounded_is_what_was_seen_before(actions, is_grounded):
    assert CausallyGrounded().keeps(script(*actions)) == is_grounded


def test_a_word_counts_as_seen_only_after_it_was_shown():
    late = script(say("search", "Arl Bet"), say("search", "Arl"), say("answer", "Bet"))
    assert not CausallyGrounded().keeps(late)
    assert CausallyGrounded(frozenset({"bet"})).keeps(late)


def test_numbers_may_be_counted_where_the_question_asks_how_many(good):
    counted = replace(
        script(say("search", "Arl"), say("answer", "2")), question="How many founded Arl?"
    )
    assert CausallyGrounded().keeps(counted)
    assert not CausallyGrounded().keeps(replace(counted, question="Who founded Arl?"))


def test_ids_in_what_the_agent_wrote_as_a_wrong_call_are_not_shown():
    asked = script(say("read", "d3"), say("read", "d3"))
    assert not CausallyGrounded().keeps(asked)


def test_group_variance_counts_members_that_count(good):
    wrong = script(say("search", "Arl"), say("answer", "Arl"))
    lost = script(say("search", "Arl"), failure="gone")
    suspended = script(say("search", "Arl"))
    assert list(GroupVariance()([good, wrong, lost])) == [good, wrong, lost]
    assert list(GroupVariance()([good, good])) == []
    assert list(GroupVariance()([good, lost, suspended])) == []
    assert list(GroupVariance()([lost])) == []


def test_whole_groups_are_kept_or_dropped(good):
    wrong = script(say("search", "Arl"), say("answer", "Arl"))
    other = replace(wrong, group="1")
    stage = WholeGroups(Correct(), least=1)
    assert list(stage([good, wrong, other])) == [good, wrong]
    assert list(WholeGroups(Correct())([good, wrong, replace(good, group="2")])) == [
        replace(good, group="2")
    ]
    assert stage.name == "Correct (group)"


def test_duplicates_are_actions_without_case_and_spacing(good):
    same = script(say("search", " arl"), say("read", "d0"), say("answer", "Bet"))
    other = script(say("search", "Arl"), say("answer", "Bet"))
    elsewhere = replace(good, task_id="t1")
    assert list(Deduplicated()([good, same, other, good, elsewhere])) == [good, other, elsewhere]
