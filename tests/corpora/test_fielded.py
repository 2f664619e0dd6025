import math
import pickle
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.corpora import ConfigurationError, Corpus, Document, load_corpus, load_tasks
from seekgym.corpora.retrieval import (
    BM25Retriever,
    Clause,
    FieldedQuery,
    FieldedRetriever,
    default_retriever,
    fielded_retriever,
)

CORPUS = load_corpus("hotpotqa-100")
WORDS = [f"w{i}" for i in range(8)]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
CLAUSES = st.builds(
    Clause,
    st.sampled_from(["add", "require", "forbid"]),
    st.sampled_from(["any", "title", "contents"]),
    st.sampled_from(WORDS),
)


def bm25(bags, term):
    """BM25 of one term in each bag, after Robertson & Zaragoza 2009."""
    mean = sum(bag.total() for bag in bags) / len(bags)
    n = sum(term in bag for bag in bags)
    idf = math.log(1 + (len(bags) - n + 0.5) / (n + 0.5))
    return [
        idf * bag[term] * 2.2 / (bag[term] + 1.2 * (0.25 + 0.75 * bag.total() / mean))
        if bag[term]
        else 0.0
        for bag in bags
    ]


def reference(documents, query, k):
    """Sum the terms' BM25, each in its field, over the documents that the clauses leave."""
    fields = {
        "any": [Counter(f"{title} {text}".split()) for title, text in documents],
        "title": [Counter(title.split()) for title, _ in documents],
        "contents": [Counter(text.split()) for _, text in documents],
    }
    wanted = [("any", word) for word in dict.fromkeys(query.text.split())]
    wanted += [(field, term) for sign, field, term in query.clauses if sign != "forbid"]
    scores = [bm25(fields[field], term) for field, term in wanted]
    found = []
    for place in range(len(documents)):
        total = sum(score[place] for score in scores)
        held = {clause: fields[clause.field][place][clause.term] > 0 for clause in query.clauses}
        is_left = all(held[c] == (c.sign == "require") for c in held if c.sign != "add")
        if total and is_left:
            found.append((-total, place))
    return [(f"d{place}", -score) for score, place in sorted(found)[:k]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=12).filter(
        lambda documents: all(any(part[i] for part in documents) for i in (0, 1))
    ),
    st.builds(FieldedQuery, TEXTS, st.lists(CLAUSES, max_size=4).map(tuple)),
)
def test_a_ranking_is_that_of_a_reference(documents, query):
    corpus = Corpus.from_documents(
        Document(f"d{place}", title, text) for place, (title, text) in enumerate(documents)
    )
    found = FieldedRetriever(corpus, language="any").rank([query], 5)[0]
    expected = reference(documents, query, 5)
    assert [hit.score for hit in found] == pytest.approx([score for _, score in expected], rel=1e-4)
    scores = dict(reference(documents, query, len(documents)))
    assert all(hit.score == pytest.approx(scores[hit.document_id], rel=1e-4) for hit in found)


def test_a_query_without_clauses_is_that_of_bm25():
    questions = [task.question for task in load_tasks("hotpotqa-100", CORPUS)]
    fielded = fielded_retriever(CORPUS)
    assert fielded.rank([FieldedQuery(text) for text in questions], 10) == default_retriever(
        CORPUS
    ).search(questions, 10)
    assert fielded.search(questions[:3], 10) == default_retriever(CORPUS).search(questions[:3], 10)


@pytest.mark.parametrize("term", ['a" OR b:c', "title:demon", "*", "", "\0", "𝔘 -x", "demon^9"])
@pytest.mark.parametrize("sign", ["add", "require", "forbid"])
def test_no_term_is_syntax(sign, term):
    fielded = fielded_retriever(CORPUS)
    plain = fielded.rank([FieldedQuery("demon")], 5)[0]
    for field in ("any", "title", "contents"):
        query = FieldedQuery("demon", (Clause(sign, field, term),))
        assert fielded.rank([query], 5)[0] == ([] if sign == "require" else plain)


def test_an_added_term_of_the_text_counts_twice():
    fielded = fielded_retriever(CORPUS)
    once = fielded.rank([FieldedQuery("demon")], 3)[0]
    twice = fielded.rank([FieldedQuery("demon", (Clause("add", "any", "demon"),))], 3)[0]
    assert [hit.score for hit in twice] == pytest.approx([2 * hit.score for hit in once])


def test_it_is_pickled_without_its_index_and_kept_apart_on_disk(tmp_path):
    query = FieldedQuery("demon", (Clause("forbid", "title", "demon"),))
    kept = FieldedRetriever(CORPUS, index_dir=tmp_path)
    plain = BM25Retriever(CORPUS, index_dir=tmp_path)
    assert kept.rank([query], 5) == fielded_retriever(CORPUS).rank([query], 5)
    assert plain.search(["demon"], 5) == kept.search(["demon"], 5)
    assert pickle.loads(pickle.dumps(kept)).rank([query], 5) == kept.rank([query], 5)
    assert kept.name != plain.name


def test_frequencies_are_those_of_the_fields():
    fielded = fielded_retriever(CORPUS)
    assert fielded.frequency("demon", "title") == 2
    assert fielded.frequency("demon") > 2
    assert fielded.frequency("no such term") == 0


@pytest.mark.parametrize(
    "clause", [Clause("must", "any", "x"), Clause("add", "body", "x"), Clause("add", "text", "x")]
)
def test_a_wrong_clause_is_named(clause):
    with pytest.raises(ConfigurationError, match="unknown"):
        fielded_retriever(CORPUS).rank([FieldedQuery("x", (clause,))], 5)
