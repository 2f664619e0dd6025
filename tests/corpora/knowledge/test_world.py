"""A world takes sensible arguments only, says how much it holds, and exports line by line."""

import json

import pytest

from seekgym.corpora import Corpus, TaskSet
from seekgym.corpora.errors import ConfigurationError
from seekgym.corpora.knowledge import KnowledgeWorld, QuestionSettings


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"entities": 0}, "entities must be a whole number from 1"),
        ({"entities": 59}, "entities must be a whole number from 60 to 2000000"),
        ({"entities": 1e3}, "entities"),
        ({"entities": True}, "entities"),
        ({"entities": 3_000_000}, "entities must be a whole number from 1 to 2000000"),
        ({"world_seed": -1}, "world_seed must be a whole number from 0"),
        ({"split": "tset"}, "did you mean 'test'"),
        ({"coverage": "subjects"}, "did you mean 'subject'"),
        ({"noise": 1.5}, "noise must be between 0 and 1"),
        ({"noise": "much"}, "noise"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        KnowledgeWorld(**{"entities": 200, **arguments})


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"count": 0}, "count"),
        ({"count": 2.5}, "count"),
        ({"count": True}, "count"),
        ({"count": 3, "seed": -1}, "seed"),
        ({"count": 3, "top_k": 0}, "top_k"),
    ],
)
def test_bad_counts_are_named(arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        KnowledgeWorld(60).tasks(**arguments)


def test_a_world_too_small_says_how_many_questions_it_holds():
    world = KnowledgeWorld(60)
    settings = QuestionSettings(kinds=("simple",))
    with pytest.raises(ConfigurationError, match=r"at most \d+, got 5000: .* 60 ent") as caught:
        world.tasks(5_000, settings=settings)
    most = int(str(caught.value).split("at most ")[1].split(",")[0])
    assert most > 50
    assert len(world.tasks(most, settings=settings)) == most


def test_export_reads_back(tmp_path):
    world = KnowledgeWorld(400, 2, noise=0.05)
    tasks = world.tasks(60)
    seen = []
    world.export(tmp_path, tasks=tasks, progress=lambda *progress: seen.append(progress))
    corpus = Corpus.from_jsonl(tmp_path / "corpus.jsonl")
    assert list(corpus) == list(world.corpus)
    assert list(TaskSet.from_jsonl(tmp_path / "tasks.jsonl", corpus=corpus)) == list(tasks)
    first = json.loads((tmp_path / "tasks.jsonl").read_text().splitlines()[0])
    assert first["difficulty"]["searches"] == len(first["proof"])
    assert first["form"] == tasks.question(tasks[0]).to_dict()
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["facts"] == list(world.facts())
    assert len(facts["facts"]) == 420
    assert facts["settings"]["coverage"] == "both"
    assert seen == [("corpus.jsonl", 420, 420), ("tasks.jsonl", 60, 60), ("facts.json", 422, 422)]


def test_texts_are_rendered_when_asked_for(monkeypatch):
    world = KnowledgeWorld(400)
    monkeypatch.setattr(type(world.corpus), "_write_prose", None)
    assert len(world.tasks(20)) == 20
    with pytest.raises(TypeError):
        world.corpus[0]
