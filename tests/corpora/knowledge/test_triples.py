"""A folder of triples becomes a world like any other, with exact gold."""

import pytest

from seekgym.corpora import BM25Retriever
from seekgym.corpora.errors import ConfigurationError, CorpusError
from seekgym.corpora.knowledge import KnowledgeWorld, QuestionSettings, Reader, solve

STARS = 24


@pytest.fixture
def folder(tmp_path):
    """Stars that orbit each other in rows, each in a cluster and of a colour."""
    labels, texts, triples = [], [], []
    for number in range(STARS):
        labels.append(f"s{number}\tStar {chr(65 + number)}")
        texts.append(f"s{number}\tIt was charted in year {number}.")
        triples.append(f"s{number}\tcluster\tc{number % 5}")
        triples.append(f"s{number}\tcolour\tk{number % 4}")
        for step in (7, 11):
            triples.append(f"s{number}\tnear\ts{(number + step) % STARS}")
        if number % 6:
            triples.append(f"s{number}\torbits\ts{number - 1}")
    labels += [f"c{number}\tCluster {number}" for number in range(5)]
    labels += [f"k{number}\tcolour {number}, pale" for number in range(4)]
    for number in range(5):
        triples.append(f"c{number}\tdiscoverer\td{number}")
        labels.append(f"d{number}\tObserver {number}")
    for name, rows in (("labels", labels), ("texts", texts), ("triples", triples)):
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "relations.tsv").write_text("orbits\tcompanion\tsatellite\n", encoding="utf-8")
    return tmp_path


def test_a_folder_is_a_world(folder):
    world = KnowledgeWorld.from_folder(folder)
    assert len(world.corpus) == STARS + 14
    assert world.corpus["e0"].title == "Star A"
    assert world.corpus["e0"].text.startswith("It was charted in year 0.")
    relation = world.entities.schema.relation
    assert {name: entry.cardinality for name, entry in relation.items()} == {
        "cluster": "n-1",
        "colour": "n-1",
        "discoverer": "1-1",
        "near": "n-n",
        "orbits": "1-1",
    }
    reader = Reader(world.entities.schema, {document.title for document in world.corpus})
    read = {tuple(triple) for document in world.corpus for triple in reader.read(document)}
    name = world.entities.name
    assert read == {
        (name(s), relation_name, name(o))
        for relation_name, edges in world.entities.edges.items()
        for s, o in zip(edges.subjects, edges.objects, strict=True)
    }


def test_its_questions_have_exact_gold(folder):
    world = KnowledgeWorld.from_folder(folder, coverage="subject")
    retriever = BM25Retriever(world.corpus)
    settings = QuestionSettings(kinds=("simple", "chain", "list"), hops=(2, 3), obfuscation=0.3)
    tasks = world.tasks(30, settings=settings, retriever=retriever)
    graph = world.graph()
    for task in tasks:
        assert solve(graph, tasks.question(task).to_dict()) == list(task.answers)
    assert {task.kind for task in tasks} == {"simple", "chain", "list"}
    assert any("satellite of" in task.question for task in tasks)
    with pytest.raises(ConfigurationError, match="at most 0"):
        world.tasks(1, settings=QuestionSettings(kinds=("comparison",)))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("triples", "s0\torbits\tq9\n", r"triples.tsv, line 1: 'q9' is not in labels.tsv"),
        ("triples", "s0\torbits\n", r"triples.tsv, line 1: must have 3 columns, got 2"),
        ("triples", "", r"triples.tsv: no triples"),
        ("labels", "s0\tStar\ns0\tOther\n", r"labels.tsv, line 2: id is empty or was used"),
        ("labels", "s0\tStar\ns1\tStar\n", r"labels.tsv, line 2: label is empty or was used"),
        ("texts", "q9\tText.\n", r"texts.tsv, line 1: 'q9'"),
    ],
)
def test_what_cannot_be_used_is_named(folder, name, text, message):
    (folder / f"{name}.tsv").write_text(text)
    with pytest.raises(CorpusError, match=message):
        KnowledgeWorld.from_folder(folder)


def test_a_missing_file_is_named(folder):
    (folder / "texts.tsv").unlink()
    with pytest.raises(CorpusError, match=r"texts\.tsv: cannot be read"):
        KnowledgeWorld.from_folder(folder)
    with pytest.raises(ConfigurationError, match="coverage"):
        KnowledgeWorld.from_folder(folder, coverage="none")
