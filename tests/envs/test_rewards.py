from dataclasses import dataclass

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.corpora import ConfigurationError
from seekgym.envs import (
    F1,
    CoverExactMatch,
    EvidenceRecall,
    ExactMatch,
    Format,
    QAEnv,
    RepeatedQuery,
    RewardTerm,
    SearchCost,
    TurnCost,
)

TASK = "5ae40c465542996836b02c25"  # Are Christopher Nolan and Sathish Kalathil both ...? yes
ALL = (ExactMatch, F1, CoverExactMatch, Format, SearchCost, TurnCost, RepeatedQuery, EvidenceRecall)


def search(query):
    return {"name": "search", "arguments": {"query": query}}


def answer(text):
    return {"name": "answer", "arguments": {"text": text}}


def play(rewards, *actions, **arguments):
    env = QAEnv(rewards=rewards, **arguments)
    env.reset(seed=0, options={"task": TASK})
    return [env.step(action) for action in actions]


def test_each_term_is_what_it_says():
    terms = [term() for term in ALL]
    steps = play(
        terms, search("Christopher Nolan"), search("christopher  nolan"), answer("yes, both")
    )
    first, second, last = (step[4]["reward_terms"] for step in steps)
    assert first["search_cost"] == second["search_cost"] == -1.0
    assert last["search_cost"] == 0.0
    assert [t["repeated_query"] for t in (first, second, last)] == [0.0, -1.0, 0.0]
    assert [t["turn_cost"] for t in (first, second, last)] == [-1.0] * 3
    assert first["evidence_recall"] in (0.5, 1.0)
    assert second["evidence_recall"] == 0.0
    assert (last["exact_match"], last["cover_exact_match"], last["format"]) == (0.0, 1.0, 1.0)
    assert last["f1"] == pytest.approx(2 / 3)


def test_evidence_recall_adds_up_to_the_final_recall():
    steps = play(
        [EvidenceRecall()],
        search("Christopher Nolan"),
        search("Sathish Kalathil"),
        search("Nolan"),
        answer("x"),
    )
    assert sum(step[1] for step in steps) == steps[-1][4]["evidence_recall"] == 1.0


def test_an_invalid_call_loses_the_format_reward_and_costs_no_search():
    steps = play([Format(), SearchCost()], search(""), answer("yes"))
    assert [step[1] for step in steps] == [0.0, 0.0]


def test_the_search_r1_ladder():
    good = {**answer("yes"), "well_formed": True}
    ill = {**answer("yes"), "well_formed": False}
    wrong = answer("no")
    wrong_ill = {**answer("no"), "well_formed": False}
    for action, expected in ((good, 1.0), (ill, 0.8), (wrong, 0.2), (wrong_ill, 0.1)):
        assert play("search-r1-v0.3", action)[-1][1] == expected
    assert play("search-r1-v0.3", search("x"), search("y"), max_turns=2)[-1][1] == 0.0


@dataclass(frozen=True)
class Brevity(RewardTerm):
    low, high = -1.0, 0.0

    def value(self, outcome):
        return -float(len(outcome.answer or "") > 2)


def test_a_users_own_term_is_a_small_class():
    assert play([ExactMatch(), Brevity(0.25)], answer("yes"))[-1][1] == 0.75
    env = gym.make("seekgym/QA-v0", rewards=[Brevity(2.0)]).unwrapped
    assert env.reward_range == (-2.0, 0.0)


def test_bad_rewards_are_refused():
    with pytest.raises(ConfigurationError, match="did you mean 'exact-match'"):
        QAEnv(rewards="exact_match")
    with pytest.raises(ConfigurationError, match="RewardTerm objects"):
        QAEnv(rewards=[1.0])
    with pytest.raises(ConfigurationError, match="share a name"):
        QAEnv(rewards=[F1(), F1(0.5)])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(ALL), unique=True, max_size=len(ALL)),
    st.lists(st.floats(-3, 3), min_size=len(ALL), max_size=len(ALL)),
    st.lists(
        st.one_of(
            st.text(max_size=20).map(search), st.text(max_size=20).map(answer), st.just({"x": 1})
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_terms_add_up_to_the_reward_within_its_range(classes, weights, actions):
    env = QAEnv(rewards=[cls(weight) for cls, weight in zip(classes, weights, strict=False)])
    low, high = env.reward_range
    env.reset(seed=0)
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        assert reward == sum(info["reward_terms"].values())
        assert low - 1e-12 <= reward <= high + 1e-12
        assert observation in env.observation_space
        if terminated or truncated:
            break
