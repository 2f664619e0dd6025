"""Searches that show single sentences of what they find."""

import gymnasium as gym
import pytest

import seekgym  # noqa: F401 - registers the environments
from seekgym.corpora.errors import ConfigurationError


@pytest.mark.parametrize("name", ["seekgym/Phantom-50-v0", "seekgym/QA-v0"])
def test_a_hit_shows_so_many_sentences_of_its_document(name):
    env = gym.make(name, hit_sentences=2, k=2)
    env.reset(seed=0)
    title = env.unwrapped.corpus[0].title
    observation, *_ = env.step({"name": "search", "arguments": {"query": title}})
    hits = observation.split("\n\n")
    assert len(hits) == 2
    for hit in hits:
        heading, *sentences = hit.splitlines()
        text = env.unwrapped.corpus[heading.partition("[")[2].partition("]")[0]].text
        assert 1 <= len(sentences) <= 2
        assert all(sentence in text for sentence in sentences)


def test_the_sentence_that_fits_the_query_is_shown():
    env = gym.make("seekgym/Phantom-50-v0", hit_sentences=1, k=1, hops=(1, 2))
    base = env.unwrapped
    for task in [task for task in base.tasks if task.hops == 1][::20]:
        env.reset(seed=0, options={"task": task.id})
        fact = task.proof[-1].fact
        query = fact.partition(" is ")[0]
        observation, *_ = env.step({"name": "search", "arguments": {"query": query}})
        assert observation.splitlines()[1] == fact


def test_the_hash_tells_it_and_a_wrong_number_is_refused():
    whole = gym.make("seekgym/Phantom-50-v0").unwrapped
    short = gym.make("seekgym/Phantom-50-v0", hit_sentences=1).unwrapped
    assert whole.env_hash != short.env_hash
    with pytest.raises(ConfigurationError, match="hit_sentences must be a whole number"):
        gym.make("seekgym/Phantom-50-v0", hit_sentences=-1)
