"""The rules of query refinement are those that it states; the kit checks the contract."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.agents import RandomAgent
from seekgym.agents.refinement import RefinementOracle, RocchioTeacher
from seekgym.corpora import ConfigurationError, Corpus, Document, Task, TaskSet
from seekgym.corpora.retrieval import Analyzer
from seekgym.envs import QAEnv
from seekgym.envs.query_refinement import QueryRefinementEnv
from seekgym.envs.scoring import ndcg

ENV = "seekgym/QueryRefinement-v0"
RAW = st.tuples(st.just("raw"), st.integers(-1, 31))
LEGAL = st.tuples(st.just("legal"), st.integers(0, 1_000))
PLACES = st.lists(st.one_of(LEGAL, LEGAL, LEGAL, RAW), max_size=40)
GAME = QueryRefinementEnv()


def reference_ndcg(ranking, relevant, k=5):
    gains = [1 if found in relevant else 0 for found in ranking[:k]]
    ideal = sorted([1] * len(relevant) + [0] * k, reverse=True)[:k]

    def dcg(row):
        return sum(gain / math.log2(place + 1) for place, gain in enumerate(row, start=1))

    return dcg(gains) / dcg(ideal)


def tiny(documents, question, evidence, **arguments):
    """Return an environment with one task over a few documents."""
    corpus = Corpus.from_documents(Document(f"d{i}", *pair) for i, pair in enumerate(documents))
    task = Task("t0", question, ("gold",), tuple(evidence))
    return QueryRefinementEnv(QAEnv(corpus, TaskSet([task])), render_mode="ansi", **arguments)


def steps(env, *labels):
    """Choose productions by their labels."""
    for label in labels:
        step = env.step(env.labels().index(label))
    return step


def test_stable_baselines_passes_it():
    checker = pytest.importorskip(
        "stable_baselines3.common.env_checker", reason="stable-baselines3 is not installed"
    )
    env = gym.make(ENV)
    checker.check_env(env.unwrapped)
    checker.check_env(env)


def test_maskable_ppo_plays_it():
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    env = gym.make(ENV)
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0)
    model.learn(64)
    observation, info = env.reset(seed=0)
    place, _ = model.predict(observation, action_masks=env.unwrapped.action_masks())
    assert info["action_mask"][place]


@settings(max_examples=60, deadline=None)
@given(PLACES, st.integers(0, 20))
def test_any_places_keep_the_rules(places, seed):
    observation, info = GAME.reset(seed=seed)
    first = reference_ndcg(GAME.results, set(GAME.task.evidence))
    total, penalties, is_over = 0.0, 0.0, False
    for kind, number in places:
        legal = np.flatnonzero(info["action_mask"])
        place = int(legal[number % len(legal)]) if kind == "legal" else number
        assert observation in GAME.observation_space
        assert np.array_equal(info["action_mask"], GAME.action_masks())
        mask, messages = info["action_mask"], len(GAME.snapshot().episode.messages)
        observation, reward, terminated, truncated, info = GAME.step(place)
        assert reward == sum(info["reward_terms"].values())
        assert -1 <= reward <= 1
        total += reward
        penalties += info["reward_terms"]["inaction"] + info["reward_terms"]["empty"]
        if not (0 <= place < 30 and mask[place]):
            assert info["error"] == ("masked" if 0 <= place < 30 else "malformed")
            said = GAME.snapshot().episode.messages[messages:]
            assert said[-1].source == "environment"
            assert said[-1].text.endswith(".")
        is_over = terminated or truncated
        assert not (terminated and truncated)
        if is_over:
            break
    last = reference_ndcg(GAME.results, set(GAME.task.evidence))
    assert total == pytest.approx(last - first + penalties, abs=1e-12)
    assert observation in GAME.observation_space
    if is_over:
        assert (info["first_ndcg"], info["ndcg"]) == pytest.approx((first, last), abs=1e-12)
        with pytest.raises(ResetNeeded):
            GAME.step(0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_results_keep_to_their_clauses(seed):
    _, info = GAME.reset(seed=seed)
    generator, analyzer, is_over = np.random.default_rng(seed), Analyzer("en"), False
    total = reference_ndcg(GAME.results, set(GAME.task.evidence))
    while not is_over:
        legal = np.flatnonzero(info["action_mask"][1:]) + 1  # no stop
        _, _, terminated, truncated, info = GAME.step(int(generator.choice(legal)))
        is_over = terminated or truncated
        total += info["reward_terms"]["ndcg"]
        assert total == pytest.approx(
            reference_ndcg(GAME.results, set(GAME.task.evidence)), abs=1e-12
        )
        for document in map(GAME.corpus.__getitem__, info["documents"]):
            held = {
                "title": analyzer.terms(document.title),
                "contents": analyzer.terms(document.text),
            }
            for sign, field, term in GAME.query.clauses:
                assert sign == "add" or (term in held[field]) == (sign == "require")
    terms = [clause.term for clause in GAME.query.clauses]
    assert len(set(terms)) == len(terms)
    assert terminated == (info["reward_terms"]["empty"] == -1)
    assert truncated == (info["searches"] == 5 and not terminated)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 9), unique=True, max_size=10),
    st.sets(st.integers(0, 12), min_size=1, max_size=8),
)
def test_ndcg_is_that_of_a_reference(ranking, relevant):
    names, gold = [str(i) for i in ranking], {str(i) for i in relevant}
    assert ndcg(names, gold, 5) == pytest.approx(reference_ndcg(names, gold), abs=1e-12)


def test_ndcg_is_that_of_ir_measures():
    measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    generator = np.random.default_rng(0)
    for _ in range(50):
        ranking = [str(i) for i in generator.permutation(12)[:8]]
        gold = {str(i) for i in generator.permutation(12)[: generator.integers(1, 8)]}
        run = {"q": {name: 1.0 / (1 + place) for place, name in enumerate(ranking)}}
        found = measures.calc_aggregate([measures.nDCG @ 5], {"q": dict.fromkeys(gold, 1)}, run)
        assert ndcg(ranking, gold, 5) == pytest.approx(found[measures.nDCG @ 5], abs=1e-6)


def test_stopping_and_empty_results_are_paid_as_stated():
    documents = [("Apple", "a red fruit"), ("Pear", "a green fruit"), ("Iron", "a red metal")]
    env = tiny(documents, "red fruit", ["d1"])
    env.reset(seed=0)
    assert env.results == ("d0", "d1", "d2")
    *_, info = steps(env, "stop")
    assert info["reward_terms"] == {"ndcg": 0.0, "inaction": -1.0, "empty": 0.0}
    env.reset(seed=0)
    _, reward, terminated, _, info = steps(env, "require", "title", "titles: Pear")
    assert (reward, env.results, terminated) == (
        pytest.approx(1 - 1 / math.log2(3)),
        ("d1",),
        False,
    )
    _, reward, terminated, _, info = steps(env, "require", "title", "titles: Apple")
    assert (reward, terminated, env.results) == (-1.0, True, ("d1",))
    assert info["reward_terms"] == {"ndcg": 0.0, "inaction": 0.0, "empty": -1.0}
    assert (info["ndcg"], info["documents"], info["query"]) == (1, (), "+title:Pear +title:Apple")


def test_an_agent_that_is_never_legal_is_paid_as_one_that_stops():
    env = QueryRefinementEnv(max_turns=3)
    env.reset(seed=0)
    rewards = [env.step(9)[1] for _ in range(3)]
    assert rewards == [0.0, 0.0, -1.0]
    assert env.snapshot().episode.is_over


def test_a_question_that_finds_nothing_begins_without_results():
    env = tiny([("Apple", "a fruit")], "xyzzy", ["d0"])
    observation, info = env.reset(seed=0)
    assert (env.results, info["terms"]) == ((), ())
    assert observation in env.observation_space
    assert env.action_masks().nonzero()[0].tolist() == [0]


def test_options_and_splits():
    train, test = QueryRefinementEnv(split="train"), QueryRefinementEnv(split="test")
    assert {task.id for task in train.tasks}.isdisjoint(task.id for task in test.tasks)
    task = test.tasks[0].id
    assert test.reset(options={"task": task})[1]["task_id"] == task
    for options in ({"task": "none"}, {"hops": 99}, {"colour": 1}):
        with pytest.raises(ConfigurationError):
            test.reset(options=options)
    for arguments in ({"requests": 1}, {"terms": 0}, {"k": 0}, {"render_mode": "x"}):
        with pytest.raises(ConfigurationError, match=next(iter(arguments))):
            QueryRefinementEnv(**arguments)


@pytest.mark.parametrize(
    "world", ["phantom:people=50,questions=20", "knowledge:entities=600,questions=20"]
)
def test_worlds_are_played_and_won(world):
    env = QueryRefinementEnv(world, render_mode="ansi")
    assert totals(env, RefinementOracle, 3) > totals(env, RandomAgent, 3) + 0.5
    assert "Terms of contents:" in env.render()


def totals(env, agent_class, count):
    """Return the mean return over the first tasks; no production is refused."""
    agent, total = agent_class(env), 0.0
    for task in env.tasks[:count]:
        observation, info = env.reset(seed=0, options={"task": task.id})
        agent.reset(observation, info)
        is_over = False
        while not is_over:
            observation, reward, terminated, truncated, info = env.step(
                agent.act(observation, info)
            )
            assert info["error"] is None
            total += reward
            is_over = terminated or truncated
        assert info["ndcg"] - info["first_ndcg"] <= 1 - info["first_ndcg"] + 1e-12
    return total / count


def test_the_oracle_is_best_and_chance_is_far_below():
    oracle, teacher, chance = (
        totals(GAME, agent, 12) for agent in (RefinementOracle, RocchioTeacher, RandomAgent)
    )
    assert oracle > teacher > chance
    assert oracle > 0.1
    assert chance < oracle - 0.5


def test_the_oracle_finds_what_all_clauses_bring():
    documents = [(f"Title{i} name{i % 3}", f"word{i % 4} thing{i % 5} other{i}") for i in range(12)]
    env = tiny(documents, "word1 thing2 other7", ["d2", "d9"], terms=4, requests=3)
    best = -1.0
    env.reset(seed=0)
    start = env.snapshot()

    def explore(value):
        nonlocal best
        best = max(best, value)
        state = env.snapshot()
        for path in env.clauses():
            env.restore(state)
            step = [env.step(place) for place in path][-1]
            if step[4]["reward_terms"]["empty"]:
                continue
            if step[3]:
                best = max(best, value + step[1])
            else:
                explore(value + step[1])

    explore(0.0)
    env.restore(start)
    assert totals(env, RefinementOracle, 1) == pytest.approx(best, abs=1e-12)
    assert best > 0
