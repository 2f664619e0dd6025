import copy
import gc
import json
import math
import multiprocessing
import pickle
import signal
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.corpora import (
    BM25Retriever,
    ConfigurationError,
    Corpus,
    Document,
    Retriever,
    TaskSet,
    load_corpus,
    load_tasks,
)
from seekgym.corpora.retrieval import Analyzer, default_retriever, detect_language

DATA = Path(__file__).parent.parent / "data"
CORPUS = load_corpus("hotpotqa-100")
TASKS = load_tasks("hotpotqa-100", CORPUS)
RETRIEVER = default_retriever(CORPUS)
WORDS = [f"w{i}" for i in range(12)]


def corpus_of(*texts):
    return Corpus.from_documents(Document(f"d{i}", "", text) for i, text in enumerate(texts))


def reference(texts, query, k):
    """BM25 in a few lines, after Robertson & Zaragoza 2009."""
    bags = [Counter(text.split()) for text in texts]
    mean = sum(bag.total() for bag in bags) / len(bags)
    scores = []
    for position, bag in enumerate(bags):
        score = 0.0
        for word in dict.fromkeys(query.split()):
            n = sum(word in other for other in bags)
            idf = math.log(1 + (len(bags) - n + 0.5) / (n + 0.5))
            length = 1.2 * (1 - 0.75 + 0.75 * bag.total() / mean)
            score += idf * bag[word] * 2.2 / (bag[word] + length)
        if score:
            scores.append((-score, position))
    return [(f"d{position}", -score) for score, position in sorted(scores)[:k]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30), min_size=1, max_size=25),
    st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=6),
    st.integers(1, 30),
)
def test_ranking_equals_a_reference(bags, query, k):
    texts = [" ".join(bag) for bag in bags]
    expected = reference(texts, " ".join(query), k)
    [found] = BM25Retriever(corpus_of(*texts), language="any").search([" ".join(query)], k)
    assert [hit.score for hit in found] == pytest.approx([s for _, s in expected], rel=1e-4)
    exact = [round(score, 4) for _, score in reference(texts, " ".join(query), len(texts))]
    if len(set(exact)) == len(exact):  # no near ties, so the order is decided by scores alone
        assert [hit.document_id for hit in found] == [document for document, _ in expected]


def test_ties_are_broken_by_order_in_the_corpus():
    corpus = corpus_of(*["quick fox", "quick god"] * 40)
    [hits] = BM25Retriever(corpus).search(["quick"], 7)
    assert [hit.document_id for hit in hits] == [f"d{i}" for i in range(7)]
    assert len({hit.score for hit in hits}) == 1


def test_ties_hold_over_several_segments(monkeypatch):
    monkeypatch.setattr("seekgym.corpora.retrieval.bm25._SMALL_CORPUS", 10)
    texts = ["same words here"] * 5_000
    retriever = BM25Retriever(corpus_of(*texts))
    [hits] = retriever.search(["same"], 9)
    assert [hit.document_id for hit in hits] == [f"d{i}" for i in range(9)]


@pytest.mark.parametrize(("name", "language"), [("zh", "any"), ("ar", "ar"), ("de", "de")])
def test_recall_in_other_scripts(name, language):
    corpus = Corpus.from_jsonl(DATA / f"xquad-{name}" / "corpus.jsonl.gz")
    tasks = TaskSet.from_jsonl(DATA / f"xquad-{name}" / "tasks.jsonl.gz", corpus=corpus)
    retriever = BM25Retriever(corpus)
    assert retriever.language == language
    assert recall(retriever, tasks, 5) >= 0.85


def test_recall_on_the_shipped_questions():
    assert RETRIEVER.language == "en"
    assert recall(RETRIEVER, TASKS, 5) >= 0.75


def recall(retriever, tasks, k):
    rankings = retriever.search([task.question for task in tasks], k)
    shares = [
        len({hit.document_id for hit in hits} & set(task.evidence)) / len(task.evidence)
        for task, hits in zip(tasks, rankings, strict=True)
    ]
    return sum(shares) / len(shares)


@settings(max_examples=300, deadline=None)
@given(st.text(), st.integers(1, 20))
def test_any_query_is_data(query, k):
    [hits] = RETRIEVER.search([query], k)
    assert len(hits) <= k
    assert len({hit.document_id for hit in hits}) == len(hits)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("character", [*"+-&|!(){}[]^\"~*?:\\/<>=,;'`@#$%", " AND ", " NOT "])
def test_no_character_is_syntax(character):
    plain = RETRIEVER.search(["Lilu demon"], 5)
    assert RETRIEVER.search([f"Lilu{character}demon"], 5)[0][0] == plain[0][0]


def test_naughty_strings_are_queries(cases):
    strings = cases("naughty_strings.json")
    rankings = RETRIEVER.search(strings, 3)
    assert len(rankings) == len(strings)


def test_batches_equal_single_searches():
    questions = [task.question for task in TASKS]
    together = RETRIEVER.search(questions, 3)
    assert together == [RETRIEVER.search([question], 3)[0] for question in questions]


def test_eight_threads_get_what_one_gets():
    questions = [task.question for task in TASKS] * 2
    expected = RETRIEVER.search(questions, 5)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: RETRIEVER.search(questions, 5), range(8)))
    assert all(result == expected for result in results)


def test_copies_and_pickles_rank_alike():
    assert copy.deepcopy(RETRIEVER) is RETRIEVER
    again = pickle.loads(pickle.dumps(RETRIEVER))
    assert again.search(["Lilu"], 3) == RETRIEVER.search(["Lilu"], 3)
    assert isinstance(again, Retriever)
    assert again.name == RETRIEVER.name


def test_a_long_query_is_capped_with_a_note_in_the_log(caplog):
    query = " ".join(f"word{i}" for i in range(2_000)) + " Lilu"
    with caplog.at_level("WARNING", logger="seekgym"):
        RETRIEVER.search([query], 3)
    assert "the first 1024 are used" in caplog.text
    assert len(RETRIEVER.search(["Lilu " * 200_000], 3)[0]) == 3


def test_arguments_are_checked():
    with pytest.raises(ConfigurationError, match="k must be"):
        RETRIEVER.search(["x"], 0)
    with pytest.raises(ConfigurationError, match="did you mean 'en'"):
        BM25Retriever(corpus_of("x"), language="eng")
    with pytest.raises(ConfigurationError, match="max_query_terms"):
        BM25Retriever(corpus_of("x"), max_query_terms=0)


def test_a_kept_index_is_used_again_and_rebuilt_when_it_does_not_match(tmp_path):
    corpus = corpus_of("alpha", "beta")
    first = BM25Retriever(corpus, index_dir=tmp_path)
    [folder] = folders(tmp_path)
    stamp = (folder / "manifest.json").stat().st_mtime_ns
    second = BM25Retriever(corpus, index_dir=tmp_path)
    assert (folder / "manifest.json").stat().st_mtime_ns == stamp
    assert second.search(["beta"], 2) == first.search(["beta"], 2) != [[]]
    other = BM25Retriever(corpus_of("alpha", "gamma"), index_dir=tmp_path)
    assert other.search(["beta"], 2) == [[]]
    assert len(other.search(["gamma"], 2)[0]) == 1
    assert pickle.loads(pickle.dumps(other)).search(["gamma"], 2) == other.search(["gamma"], 2)


def test_a_half_built_index_is_never_taken_for_a_whole_one(tmp_path):
    corpus = corpus_of("alpha", "beta")
    BM25Retriever(corpus, index_dir=tmp_path)
    [folder] = folders(tmp_path)
    (folder / "manifest.json").unlink()
    (folder / "meta.json").write_text("{", encoding="utf-8")
    assert len(BM25Retriever(corpus, index_dir=tmp_path).search(["beta"], 2)[0]) == 1


def folders(path):
    return [entry for entry in path.iterdir() if entry.is_dir()]


def build_slowly(path):
    def render(position):
        time.sleep(0.001)
        return Document(str(position), "", f"word{position}")

    ids = [str(i) for i in range(100_000)]
    BM25Retriever(Corpus(ids, render, name="slow", fingerprint="f"), language="any", index_dir=path)


def test_a_killed_build_leaves_nothing_that_is_found(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=build_slowly, args=(tmp_path,))
    process.start()
    while not folders(tmp_path):
        process.join(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not [path for path in tmp_path.rglob("manifest.json")]
    small = Corpus([str(i) for i in range(10)], whole, name="slow", fingerprint="f")
    retriever = BM25Retriever(small, language="any", index_dir=tmp_path)
    assert len(retriever.search(["word3"], 5)[0]) == 1
    assert not list(tmp_path.glob("building-*"))


def whole(position):
    return Document(str(position), "", f"word{position}")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat sat on the mat and it was very happy with that.", "en"),
        ("Der Hund ist in das Haus gegangen und hat sich auf die Decke gelegt.", "de"),
        ("Le chat est dans la maison et il ne veut pas sortir avec nous.", "fr"),
        ("El perro está en la casa y no quiere salir con nosotros.", "es"),
        ("Кошка сидит на окне и смотрит на улицу.", "ru"),
        ("القط في البيت", "ar"),
        ("这只猫坐在垫子上", "any"),
        ("xyzzy plugh", "any"),
        ("", "any"),
    ],
)
def test_language_is_detected(text, language):
    assert detect_language([text]) == language


def test_analysis_is_the_same_for_documents_and_queries():
    analyzer = Analyzer("de")
    assert analyzer.terms("Häuser") == analyzer.query_terms("HÄUSER")
    assert Analyzer("any").terms("ＡＢＣ ﬁsh") == ["abc", "fish"]
    assert json.dumps(Analyzer("en").terms("a\ud83cb"))


def test_a_damaged_index_is_built_again(tmp_path):
    corpus = corpus_of("alpha", "beta")
    BM25Retriever(corpus, index_dir=tmp_path)
    [folder] = folders(tmp_path)
    for damage in (lambda: (folder / "meta.json").unlink(), lambda: cut_files(folder)):
        damage()
        assert len(BM25Retriever(corpus, index_dir=tmp_path).search(["beta"], 2)[0]) == 1


def cut_files(folder):
    for path in folder.iterdir():
        if path.suffix in (".term", ".idx", ".store", ".fast"):
            path.write_bytes(path.read_bytes()[:3])


def test_a_corpus_goes_when_nobody_holds_it():
    corpus = corpus_of("alpha")
    default_retriever(corpus).search(["alpha"], 1)
    alive = weakref.ref(corpus)
    del corpus
    gc.collect()
    assert alive() is None
