"""Articles say what is true, where the coverage says so; an independent reader gets it all back."""

import pickle
import re

import pytest

from seekgym.corpora.knowledge import KnowledgeWorld, Reader
from seekgym.corpora.knowledge.edges import COVERAGES, MOST_LISTED


@pytest.fixture(scope="module", params=COVERAGES)
def world(request):
    return KnowledgeWorld(1_200, 4, coverage=request.param, noise=0.1)


@pytest.fixture(scope="module")
def triples(world):
    """What the reader finds in each article."""
    reader = Reader(world.entities.schema, {document.title for document in world.corpus})
    return {document.id: reader.read(document) for document in world.corpus}


def test_the_reader_finds_nothing_but_the_truth(world, triples):
    graph = world.entities
    numbers = {graph.name(entity): entity for entity in range(len(graph))}
    attributes = {entry.name: entry for entry in graph.schema.attributes}
    for found in triples.values():
        for subject, predicate, told in found:
            if predicate in graph.edges:
                edge = graph.edges[predicate].edge(numbers[subject], numbers[told])
                assert edge is not None
            else:
                kind = graph.type_of(numbers[subject]).name
                entry = next(a for a in graph.schema.attributes_of(kind) if a.name == predicate)
                assert graph.value(numbers[subject], entry) == told
    assert attributes


def test_every_edge_is_stated_where_the_coverage_says(world, triples):
    graph, coverage = world.entities, world.settings.coverage
    at_object = at_subject = 0
    for name, edges in graph.edges.items():
        for edge, (subject, entity) in enumerate(zip(edges.subjects, edges.objects, strict=True)):
            triple = (graph.name(subject), name, graph.name(entity))
            in_subject = triple in triples[f"e{subject}"]
            in_object = triple in triples[f"e{entity}"]
            assert edges.in_subject[edge] <= in_subject
            assert edges.in_object[edge] <= in_object
            assert in_subject or in_object
            at_subject += edges.in_subject[edge]
            at_object += edges.in_object[edge]
            if coverage == "subject" and not in_subject:
                assert len(edges.out_edges(subject)) > MOST_LISTED
            if coverage == "object" and not in_object:
                assert len(edges.in_edges(entity)) > MOST_LISTED
    if coverage == "either":
        assert 0.4 < at_object / (at_subject + at_object) < 0.6


def test_articles_are_80_to_400_words_and_linked(world):
    documents = {document.id: document for document in world.corpus}
    for document in documents.values():
        assert 80 <= len(document.text.split()) <= 400
        assert document.links
        assert document.id not in document.links
        assert all(documents[link].title in document.text for link in document.links)
    urls = [document.url for document in documents.values()]
    assert len(set(urls)) == len(urls)


def test_every_sentence_form_is_used_and_pronouns_too(world):
    text = "\n".join(document.text for document in world.corpus if document.id.startswith("e"))
    for relation in world.entities.schema.relations:
        for form in relation.says if world.settings.coverage == "both" else ():
            literal = max(re.split(r"\{\w\}", form), key=len)
            assert literal in text or len(world.entities.edges[relation.name]) <= 60
    assert re.search(r"\bShe |\bHe ", text)
    assert re.search(r"\bIt ", text)


def test_side_documents_are_wrong_and_say_so(world):
    graph = world.entities
    marked = [fact for fact in world.facts() if fact.get("is_outdated")]
    assert len(marked) == round(0.1 * len(graph))
    for fact in marked:
        document = world.corpus[fact["id"]]
        assert "is superseded" in document.text.split(".")[0]
        assert fact["claims"]
        entity = int(fact["about"][1:])
        for claim in fact["claims"]:
            if "relation" in claim:
                other = int(claim["object"][1:])
                assert graph.edges[claim["relation"]].edge(entity, other) is None
                assert graph.name(other) in document.text
            else:
                assert claim["value"] in document.text
                kind = graph.type_of(entity).name
                entries = graph.schema.attributes_of(kind)
                entry = next(e for e in entries if e.name == claim["attribute"])
                assert claim["value"] != graph.value(entity, entry)


def test_noise_changes_no_article():
    quiet, noisy = KnowledgeWorld(300, 1), KnowledgeWorld(300, 1, noise=0.5)
    assert tuple(quiet.corpus) == noisy.corpus[:300]
    assert len(noisy.corpus) == 450


def test_fingerprints_tell_worlds_apart():
    worlds = [
        KnowledgeWorld(300, 1),
        KnowledgeWorld(300, 2),
        KnowledgeWorld(300, 1, split="test"),
        KnowledgeWorld(300, 1, coverage="either"),
        KnowledgeWorld(300, 1, noise=0.1),
    ]
    assert len({world.corpus.fingerprint for world in worlds}) == len(worlds)
    assert worlds[0].corpus.fingerprint == KnowledgeWorld(300, 1).corpus.fingerprint


def test_a_world_pickles():
    world = KnowledgeWorld(300, 1)
    again = pickle.loads(pickle.dumps(world))
    assert again.corpus[7] == world.corpus[7]
    assert list(again.tasks(5)) == list(world.tasks(5))
