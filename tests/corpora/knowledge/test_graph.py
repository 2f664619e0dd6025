"""Every constraint of the schema holds, degrees follow Zipf, and the splits share no name."""

import json
import re

import networkx as nx
import numpy as np
import pytest

from seekgym.corpora.knowledge import KnowledgeWorld, encyclopedia
from seekgym.corpora.knowledge.names import INITIALS, MAX_WORDS, Names


@pytest.fixture(scope="module", params=[(60, 3), (900, 5), (3_600, 8)], ids=str)
def world(request):
    return KnowledgeWorld(*request.param)


def test_cardinality_types_order_and_gaps_hold(world):
    graph = world.graph()
    for relation in encyclopedia().relations:
        edges = [(s, o) for s, o, key in graph.edges(keys=True) if key == relation.name]
        nodes = graph.nodes
        assert all(nodes[s]["type"] == relation.domain for s, _ in edges)
        assert all(nodes[o]["type"] == relation.range for _, o in edges)
        assert all(s != o for s, o in edges)
        assert len(set(edges)) == len(edges)
        if relation.has_one_object:
            assert len({s for s, _ in edges}) == len(edges)
        if relation.has_one_subject:
            assert len({o for _, o in edges}) == len(edges)
        if relation.acyclic:
            assert nx.is_directed_acyclic_graph(nx.DiGraph(edges))
        if relation.gap_years is not None:
            check_gap(world, graph, relation, edges)


def check_gap(world, graph, relation, edges):
    young, old = relation.domain, relation.range
    dates = [world.entities.schema.first_date(kind).name for kind in (young, old)]
    for subject, entity in edges:
        days = graph.nodes[subject][dates[0]], graph.nodes[entity][dates[1]]
        older = days[1] - days[0] if relation.cardinality == "1-n" else days[0] - days[1]
        assert older >= relation.gap_years * 365


def test_attributes_keep_to_their_ranges(world):
    for kind in world.entities.blocks:
        for attribute in world.entities.schema.attributes_of(kind):
            values = world.entities.values[kind, attribute.name]
            if attribute.kind == "date":
                assert (
                    values.min()
                    >= np.datetime64(f"{attribute.low:04.0f}-01-01")
                    .astype("datetime64[D]")
                    .astype(int)
                    + 719_163
                )
            else:
                scale = 10 if attribute.kind == "measure" else 1
                assert attribute.low * scale <= values.min()
                assert values.max() <= attribute.high * scale


def test_names_are_unique(world):
    names = [world.entities.name(entity) for entity in range(len(world.entities))]
    assert len(set(names)) == len(names)


def test_degrees_follow_zipf():
    world = KnowledgeWorld(30_000, 2)
    counts = np.bincount(world.entities.edges["birthplace"].objects)
    degrees = np.sort(counts[counts > 0])[::-1][:300]
    ranks = np.arange(len(degrees)) + 2
    slope = np.polyfit(np.log(ranks), np.log(degrees), 1)[0]
    assert slope == pytest.approx(-encyclopedia().zipf, abs=0.05)


def test_json_and_networkx_hold_the_same(world):
    plain = json.loads(json.dumps(world.entities.to_json()))
    graph = world.graph()
    assert {(s, o, r) for s, r, o in plain["edges"]} == set(graph.edges(keys=True))
    assert [node["id"] for node in plain["nodes"]] == list(graph.nodes)
    assert all(graph.nodes[node["id"]]["name"] == node["name"] for node in plain["nodes"])


def words_of(world):
    """Return every word of a name that is not one of the schema's forms."""
    forms = " ".join(form for kind in encyclopedia().types for form in kind.names)
    common = set(re.sub(r"\{\w\}\w*", " ", forms).split())
    names = " ".join(world.entities.name(entity) for entity in range(len(world.entities)))
    return set(names.split()) - common


def test_splits_share_no_invented_word():
    found = {"train": set(), "test": set()}
    for seed in range(4):
        for split in found:
            found[split] |= words_of(KnowledgeWorld(2_000, seed, split=split))
    assert not found["train"] & found["test"]
    for split, words in found.items():
        assert len(words) > 5_000
        assert {word[0].lower() for word in words} <= set(INITIALS[split])
    assert not set(INITIALS["train"]) & set(INITIALS["test"])


def test_no_word_comes_twice():
    names = Names.draw("train", np.random.default_rng(1))
    drawn = {names.name("{w}", number) for number in range(0, MAX_WORDS, 37)}
    assert len(drawn) == len(range(0, MAX_WORDS, 37))
