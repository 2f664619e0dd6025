import itertools
import math
import pickle
from collections import Counter

import gymnasium as gym
import pytest
from hamlets import HamletEnv, hamlets
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.agents import OracleAgent, RandomAgent
from seekgym.agents.rollouts import play
from seekgym.corpora import ConfigurationError
from seekgym.corpora.retrieval import Analyzer
from seekgym.envs.wrappers import (
    AnswerLikelihood,
    GraspMix,
    PotentialShaping,
    SearchDiscount,
    StepSearchGain,
    TextProtocol,
    oracle_potential,
)

ENV = "seekgym/QA-v0"
CALLS = (
    {"name": "search", "arguments": {"query": "Arl"}},
    {"name": "search", "arguments": {"query": "Cor"}},
    {"name": "read", "arguments": {"document_id": "d0"}},
    {"name": "answer", "arguments": {"text": "Bet"}},
    {"name": "answer", "arguments": {"text": "Dun"}},
    {"name": "look", "arguments": {}},
)


def crowd(progress):
    """A potential that has nothing to do with the task."""
    return (
        1.5
        + 0.3 * len(progress.seen)
        - 0.7 * len(progress.acts)
        + len(" ".join(progress.read)) / 99
    )


def episodes(env, discount=1.0):
    """Play every sequence of calls to its end; return the discounted return of each."""
    returns = {}
    for calls in itertools.product(range(len(CALLS)), repeat=env.unwrapped.rules.max_turns):
        env.reset(seed=0, options={"task": "t0"})
        total = 0.0
        for number, place in enumerate(calls):
            _, reward, terminated, truncated, info = env.step(CALLS[place])
            assert reward == sum(info["reward_terms"].values())
            total += discount**number * reward
            if terminated or truncated:
                break
        returns[calls[: number + 1], truncated] = total
    return returns


@pytest.mark.parametrize("potential", [oracle_potential, crowd])
@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_a_potential_moves_every_episode_by_the_same(potential, discount):
    plain = HamletEnv(max_turns=3)
    shaped = PotentialShaping(plain, potential, discount=discount, weight=0.5)
    before, after = episodes(plain, discount), episodes(shaped, discount)
    shaped.reset(seed=0, options={"task": "t0"})
    start = 0.5 * potential(shaped.snapshot().progress)
    assert before.keys() == after.keys()
    assert {is_truncated for _, is_truncated in before} == {True, False}
    assert start != 0
    for episode, value in before.items():
        assert after[episode] - value == pytest.approx(-start, abs=1e-12)
    order = sorted(before, key=lambda episode: round(before[episode], 9))
    assert order == sorted(before, key=lambda episode: round(after[episode] + start, 9))


def test_what_is_no_potential_moves_episodes_apart():
    env = HamletEnv(max_turns=3)
    plain, shaped = episodes(env), episodes(StepSearchGain(env))
    assert len({round(shaped[episode] - plain[episode], 9) for episode in plain}) > 1


def test_the_oracles_steps_are_counted():
    env = PotentialShaping(HamletEnv(), oracle_potential)
    env.reset(seed=0, options={"task": "t0"})
    assert [env.step(CALLS[place])[1] for place in (1, 0, 3)] == [0.0, 1.0, 2.0]


def test_a_score_of_answers_is_a_potential():
    seen = []

    def score(question, read, answers):
        seen.append((question, len(read), answers))
        return -1.0 if any("Bet" in text for text in read) else -3.0

    env = PotentialShaping(HamletEnv(), AnswerLikelihood(score), weight=0.1, name="likelihood")
    env.reset(seed=0, options={"task": "t0"})
    *_, info = env.step(CALLS[0])
    assert info["reward_terms"]["likelihood"] == pytest.approx(0.2)
    assert seen == [("Who founded Arl?", 0, ("Bet",)), ("Who founded Arl?", 1, ("Bet",))]
    *_, info = env.step(CALLS[3])
    assert info["reward_terms"] == {"exact_match": 1.0, "likelihood": pytest.approx(0.1)}


def all_of_them(env):
    for wrap in (StepSearchGain, SearchDiscount, GraspMix):
        env = wrap(env)
    return PotentialShaping(env, oracle_potential)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(CALLS), max_size=8), st.sampled_from(["t0", "t1", "t2"]))
def test_terms_add_up_and_tell_nothing_else(calls, task):
    plain, shaped = hamlets(), all_of_them(HamletEnv())
    expected, found = (env.reset(options={"task": task}) for env in (plain, shaped))
    assert found == expected
    for call in calls:
        expected, found = plain.step(call), shaped.step(call)
        terms = found[4].pop("reward_terms")
        expected_terms = expected[4].pop("reward_terms")
        assert found[1] == sum(terms.values())
        assert {name: terms[name] for name in expected_terms} == expected_terms
        assert (found[0], found[2:]) == (expected[0], expected[2:])
        if found[2] or found[3]:
            break


def test_a_snapshot_takes_the_wrappers_with_it():
    env = all_of_them(HamletEnv())
    env.reset(seed=0, options={"task": "t0"})
    env.step(CALLS[1])
    state = pickle.loads(pickle.dumps(env.snapshot()))
    expected = [env.step(CALLS[place])[:4] for place in (1, 0, 3)]
    env.reset(seed=5)
    env.restore(state)
    assert [env.step(CALLS[place])[:4] for place in (1, 0, 3)] == expected


def test_a_failed_backend_is_paid_nothing():
    env = all_of_them(HamletEnv())
    env.reset(seed=0)
    _, reward, _, truncated, info = env.step(env.unwrapped.break_backend())
    assert (reward, truncated, info["valid"]) == (0.0, True, False)
    assert set(info["reward_terms"].values()) == {0.0}


def reference_gain(env, turns):
    """Return gain and redundancy of each turn, from the texts alone."""
    corpus, analyzer = env.corpus, Analyzer("en")
    bags = {d.id: Counter(analyzer.content_terms(f"{d.title} {d.text}")) for d in corpus}

    def vector(name):
        return {
            term: n * (1 + math.log((1 + len(bags)) / (1 + sum(term in b for b in bags.values()))))
            for term, n in bags[name].items()
        }

    def cosine(a, b):
        dot = sum(a.get(term, 0) * b[term] for term in b)
        return dot / math.hypot(*a.values()) / math.hypot(*b.values())

    evidence = [vector(name) for name in env.task.evidence]
    best, seen, rows = [0.0] * len(evidence), set(), []
    for shown in turns:
        gain = 0.0
        for place, gold in enumerate(evidence):
            near = max((cosine(vector(name), gold) for name in shown), default=0.0)
            gain += max(0.0, near - best[place]) / len(evidence)
            best[place] = max(best[place], near)
        rows.append((gain, len(set(shown) & seen) / len(shown) if shown else 0.0))
        seen |= set(shown)
    return rows


@pytest.mark.parametrize("scale", [0.6, 1.6])
def test_information_gain_is_that_of_a_reference(env, scale):
    shaped = StepSearchGain(env, scale=scale)
    task = env.tasks[0]
    shaped.reset(options={"task": task.id})
    queries = [task.question, "music", task.question, "?!"]
    queries.append(env.corpus[task.evidence[1]].title)
    turns, found = [], []
    for query in queries:
        *_, info = shaped.step(env.search_call(query))
        turns.append(info["documents"])
        terms = info["reward_terms"]
        found.append((terms["information_gain"], -terms["redundancy"]))
    expected = [(scale * a, scale * b) for a, b in reference_gain(env, turns)]
    assert found == [pytest.approx(row, abs=1e-9) for row in expected]
    assert found[0][0] > 0
    assert found[2] == (0.0, pytest.approx(scale))
    assert found[3] == (0.0, 0.0)


def test_opening_what_a_search_showed_is_not_redundant(env):
    shaped = StepSearchGain(env)
    task = env.tasks[0]
    shaped.reset(options={"task": task.id})
    *_, info = shaped.step(env.search_call(task.question))
    *_, info = shaped.step(env.reading_call(info["documents"][0]))
    assert info["documents"]
    assert info["reward_terms"]["redundancy"] == 0
    opened = StepSearchGain(env, tools=("read",))
    opened.reset(options={"task": task.id})
    *_, info = opened.step(env.reading_call(task.evidence[0]))
    assert info["reward_terms"]["information_gain"] > 0


def test_a_search_that_was_refused_is_none():
    env = SearchDiscount(HamletEnv())
    env.reset(seed=0, options={"task": "t0"})
    *_, info = env.step({"name": "search", "arguments": {"query": ""}})
    assert info["error"] is not None
    assert env.step(CALLS[3])[4]["reward_terms"]["search_discount"] == 0


def last_terms(env, *places):
    env.reset(seed=0, options={"task": "t0"})
    for place in places:
        *_, info = env.step(CALLS[place])
    return info["reward_terms"]


@pytest.mark.parametrize(
    ("arguments", "places", "paid"),
    [
        ({}, (3,), 0.0),
        ({}, (0, 3), -0.1),
        ({}, (0, 0, 3), -0.1),
        ({}, (0, 4), 0.0),
        ({}, (0, 0), 0.0),
        ({"share": 0.5}, (0, 3), -0.5),
        ({"known": ["t0"]}, (0, 3), -1.0),
        ({"known": ["t0"]}, (3,), 0.0),
        ({"known": ["t1"]}, (0, 3), 0.0),
    ],
)
def test_a_search_that_was_not_needed_is_taken_back(arguments, places, paid):
    terms = last_terms(SearchDiscount(HamletEnv(), **arguments), *places)
    assert terms["search_discount"] == pytest.approx(paid)


@pytest.mark.parametrize(
    ("places", "paid"),
    [
        ((3,), (0.0, 0.0, 0.15)),
        ((0, 2, 3), (0.7, 0.15, 0.15 * 3 / 5)),
        ((0, 2, 4), (0.7, 0.15, 0.0)),
        ((1, 3), (0.0, 0.0, 0.15 * 4 / 5)),
        ((0, 2), (0.0, 0.0, 0.0)),  # not over yet
        ((1, 1, 1, 1, 1, 2), (0.7, 0.0, 0.0)),  # truncated
    ],
)
def test_the_mix_is_paid_at_the_end(places, paid):
    terms = last_terms(GraspMix(HamletEnv(max_turns=6)), *places)
    found = tuple(terms[name] for name in ("reading", "searching", "efficiency"))
    assert found == pytest.approx(paid)


def test_they_stand_under_a_protocol_and_are_part_of_the_spec():
    env = TextProtocol(StepSearchGain(gym.make(ENV), scale=1.6), "search-r1")
    question, _ = env.reset(seed=0)
    *_, info = env.step(f"<search>{question}</search>")
    assert info["reward_terms"]["information_gain"] > 0
    again = gym.make(GraspMix(gym.make(ENV)).spec)
    assert "reading" in play(again, RandomAgent(again), seed=1).turns[0].reward_terms
    best = play(again, OracleAgent(again), seed=1).turns[-1].reward_terms
    assert best["searching"] == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("wrap", "arguments"),
    [
        (PotentialShaping, {"potential": oracle_potential, "discount": 1.1}),
        (PotentialShaping, {"potential": "oracle"}),
        (SearchDiscount, {"share": 2}),
        (SearchDiscount, {"metric": "em"}),
        (GraspMix, {"search_tools": ()}),
    ],
)
def test_bad_arguments_are_named(wrap, arguments):
    with pytest.raises(ConfigurationError, match=list(arguments)[-1]):
        wrap(hamlets(), **arguments)


def test_what_cannot_be_shaped_is_named():
    with pytest.raises(ConfigurationError, match="task and a corpus"):
        StepSearchGain(gym.make("CartPole-v1"))
    env = PotentialShaping(HamletEnv(), crowd, name="exact_match")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="already"):
        env.step(CALLS[0])
