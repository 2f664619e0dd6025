import gymnasium as gym
import pytest

from seekgym.agents import AGENTS, Agent, get_agent
from seekgym.agents.reading import Passage, choose_answer, names, parse_passages
from seekgym.agents.rollouts import play
from seekgym.corpora import ConfigurationError


@pytest.fixture(scope="module")
def scores():
    """Play every baseline on every shipped question, seed 0."""
    env = gym.make("seekgym/QA-v0")
    found = {}
    for name, agent_class in AGENTS.items():
        agent = agent_class(env)
        played = [
            play(env, agent, seed=0, options={"task": task.id}) for task in env.unwrapped.tasks
        ]
        found[name] = {
            metric: sum(t.outcome[metric] for t in played) / len(played)
            for metric in ("exact_match", "f1", "evidence_recall", "searches", "invalid_calls")
        }
    return found


def test_the_oracle_is_the_ceiling(scores):
    assert scores["oracle"]["exact_match"] == 1.0
    assert scores["oracle"]["evidence_recall"] == 1.0


def test_closed_book_is_the_floor(scores):
    assert scores["closed-book"]["exact_match"] < 0.15
    assert scores["closed-book"]["searches"] == 0.0


def test_searching_again_finds_clearly_more_evidence(scores):
    once, again = scores["retrieve-then-read"], scores["iterative"]
    assert again["evidence_recall"] > once["evidence_recall"] + 0.1
    assert again["f1"] > once["f1"] > scores["closed-book"]["f1"]


def test_scripted_agents_make_no_invalid_call(scores):
    for name in ("closed-book", "retrieve-then-read", "iterative", "oracle"):
        assert scores[name]["invalid_calls"] == 0.0, name


def test_only_the_oracle_says_that_it_sees_gold():
    assert [name for name, agent in AGENTS.items() if agent.sees_gold] == ["oracle"]


def test_agents_are_found_by_name_or_by_module():
    assert get_agent("oracle") is AGENTS["oracle"]
    assert get_agent("seekgym.agents.baselines:RandomAgent") is AGENTS["random"]
    for name, words in (
        ("orcale", "did you mean 'oracle'"),
        ("nowhere:Agent", "cannot be imported"),
        ("json:dumps", "no subclass"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            get_agent(name)
    assert issubclass(get_agent("oracle"), Agent)


def test_passages_are_read_from_observations():
    text = "1. [a] Title A\none\ntwo\n\n2. [b] Title B\nthree"
    assert parse_passages(text) == [
        Passage("a", "Title A", "one\ntwo"),
        Passage("b", "Title B", "three"),
    ]
    assert parse_passages("No results for this query. Try other words.") == []
    assert parse_passages("[a] Title\ntext") == [Passage("a", "Title", "text")]


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("When was Ann Lee born?", "Ann Lee was born 3 May 1920 in Rome.", "3 May 1920"),
        ("What year was Ann Lee born?", "Ann Lee was born in 1920.", "1920"),
        ("How many novels did Ann Lee write?", "Ann Lee wrote 12 novels.", "12"),
        ("Who taught Ann Lee?", "Ann Lee was taught by Bob Ray.", "Bob Ray"),
    ],
)
def test_answers_are_of_the_kind_that_is_asked(question, text, expected):
    assert choose_answer(question, [Passage("a", "", text)]) == expected


def test_there_is_always_an_answer():
    assert choose_answer("Who?", []) == "unknown"
    assert choose_answer("Is it?", []) == "yes"
    assert choose_answer("Who?", [Passage("a", "T", "nothing here")]) == "T"
    assert names("The Beatles met Bob de la Ray.")
