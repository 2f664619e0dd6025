"""What must hold of any world, of 2,000 tasks over ten seeds, and of the time it takes."""

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.corpora import BM25Retriever
from seekgym.corpora.certificates import certify
from seekgym.corpora.knowledge import (
    KnowledgeWorld,
    QuestionSettings,
    Reader,
    one_query_table,
    solve,
)
from seekgym.corpora.knowledge.edges import COVERAGES

EVERYTHING = QuestionSettings(hops=(2, 6), constraints=(2, 4), obfuscation=0.5)


@given(
    entities=st.integers(60, 500),
    world_seed=st.integers(0, 2**63 - 1),
    split=st.sampled_from(["train", "test"]),
    coverage=st.sampled_from(COVERAGES),
    noise=st.floats(0, 1),
    obfuscation=st.floats(0, 1),
)
@settings(max_examples=15, deadline=None)
def test_any_world_agrees_with_itself(entities, world_seed, split, coverage, noise, obfuscation):
    world = KnowledgeWorld(entities, world_seed, split=split, coverage=coverage, noise=noise)
    wanted = QuestionSettings(kinds=("simple", "chain"), hops=(2, 3), obfuscation=obfuscation)
    graph = world.graph()
    tasks = world.tasks(6, seed=3, settings=wanted)
    reader = Reader(world.entities.schema, {document.title for document in world.corpus})
    name = world.entities.name
    for task in tasks:
        assert solve(graph, tasks.question(task).to_dict()) == list(task.answers)
        found = {triple for place in task.evidence for triple in reader.read(world.corpus[place])}
        for subject, predicate, entity in tasks.proofs[task.id].facts:
            assert entity < 0 or (name(subject), predicate, name(entity)) in found


@pytest.mark.exhaustive
def test_a_world_with_a_thousand_questions_takes_under_five_seconds():
    start = time.perf_counter()
    world = KnowledgeWorld(3_600, 1)
    world.tasks(1_000, settings=EVERYTHING)
    assert time.perf_counter() - start < 5


@pytest.mark.exhaustive
def test_a_hundred_thousand_entities_take_under_a_minute():
    start = time.perf_counter()
    world = KnowledgeWorld(100_000, 1)
    world.tasks(1_000, settings=EVERYTHING, retriever=BM25Retriever(world.corpus))
    assert time.perf_counter() - start < 60


@pytest.mark.exhaustive
def test_two_thousand_tasks_over_ten_seeds():
    found, numbers = Counter(), Counter()
    for seed in range(10):
        split = "test" if seed % 2 else "train"
        world = KnowledgeWorld(3_600, seed, split=split, noise=0.1 * (seed % 3))
        retriever, graph = BM25Retriever(world.corpus), world.graph()
        tasks = world.tasks(200, seed=seed, settings=EVERYTHING, retriever=retriever)
        assert all(certify(tasks, retriever, 5))
        assert tasks.report.retrieved_share > 0.9
        for task in tasks:
            assert solve(graph, tasks.question(task).to_dict()) == list(task.answers)
        for (kind, _), (given_away, number) in one_query_table(tasks, retriever).items():
            found[kind] += given_away
            numbers[kind] += number
    assert sum(numbers.values()) == 2_000
    assert all(found[kind] < 0.2 * numbers[kind] for kind in numbers if kind != "simple")
