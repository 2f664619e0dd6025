import copy

import pytest

from seekgym.corpora import (
    ConfigurationError,
    Corpus,
    CorpusError,
    Document,
    ProofStep,
    Task,
    TaskSet,
    load_corpus,
    load_tasks,
)

ROW = {"id": "t", "question": "Who?", "answers": ["Ann"]}


def test_tasks_are_read_with_their_defaults(write):
    rows = [
        ROW,
        {
            **ROW,
            "id": "u",
            "evidence": ["a", "b"],
            "type": "bridge",
            "level": "hard",
            "proof": [{"query": "q", "document": "a", "fact": "f"}],
        },
    ]
    tasks = TaskSet.from_jsonl(write("t.jsonl", rows))
    assert tasks["t"] == Task("t", "Who?", ("Ann",))
    assert tasks[1] == Task(
        "u", "Who?", ("Ann",), ("a", "b"), 2, "bridge", (ProofStep("q", "a", "f"),), "hard"
    )
    assert "u" in tasks
    assert "v" not in tasks
    assert copy.deepcopy(tasks) is tasks


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"question": None}, "question"),
        ({"question": " "}, "question"),
        ({"answers": None}, "answers"),
        ({"answers": []}, "answers"),
        ({"answers": "Ann"}, "answers"),
        ({"answers": ["", " "]}, "answers"),
        ({"answers": [1]}, "answers"),
        ({"evidence": ["nowhere"]}, "evidence"),
        ({"evidence": "a"}, "evidence"),
        ({"hops": 0}, "hops"),
        ({"hops": "2"}, "hops"),
        ({"hops": True}, "hops"),
        ({"is_answer_set": "yes"}, "is_answer_set"),
        ({"proof": "p"}, "proof"),
        ({"proof": [{"query": "q"}]}, "document"),
        ({"proof": [{"query": "q", "document": "nowhere"}]}, "proof"),
        ({"question": "a\0b"}, "question"),
        ({"answers": ["a\0b"]}, "answers"),
    ],
)
def test_bad_tasks_are_named_by_file_line_and_field(write, change, field):
    corpus = Corpus.from_documents([Document("a", "", "x")])
    row = {key: value for key, value in {**ROW, "id": "u", **change}.items() if value is not None}
    with pytest.raises(CorpusError, match=rf"t\.jsonl, line 2, field '{field}'"):
        TaskSet.from_jsonl(write("t.jsonl", [ROW, row]), corpus=corpus)


def test_duplicate_ids_and_empty_files_are_refused(write):
    with pytest.raises(CorpusError, match="line 2, field 'id'"):
        TaskSet.from_jsonl(write("t.jsonl", [ROW, ROW]))
    with pytest.raises(CorpusError, match="no tasks"):
        TaskSet.from_jsonl(write("t.jsonl", b""))
    with pytest.raises(CorpusError, match="twice"):
        TaskSet([Task("t", "Who?", ("Ann",))] * 2)


def test_splits_are_disjoint_in_tasks_and_evidence_and_cover_all():
    tasks = load_tasks("hotpotqa-100", load_corpus("hotpotqa-100"))
    train, test = tasks.split("train"), tasks.split("test")
    assert sorted(t.id for t in (*train, *test)) == sorted(t.id for t in tasks)
    assert len(test) == 20
    assert not {d for t in train for d in t.evidence} & {d for t in test for d in t.evidence}
    assert tasks.split("all") is tasks
    assert tasks.split("test") is test


def test_tasks_that_share_evidence_stay_together():
    chain = [Task(f"c{i}", "?", ("x",), (f"d{i}", f"d{i + 1}")) for i in range(6)]
    alone = [Task(f"a{i}", "?", ("x",), (f"e{i}",)) for i in range(24)]
    tasks = TaskSet([*chain, *alone])
    test = {task.id for task in tasks.split("test")}
    assert test.isdisjoint(t.id for t in chain) or test.issuperset(t.id for t in chain)
    with pytest.raises(ConfigurationError, match="split='test'"):
        TaskSet(chain).split("test")
    with pytest.raises(ConfigurationError, match="did you mean 'test'"):
        tasks.split("tset")


def test_select_narrows_by_kind_hops_and_level():
    tasks = load_tasks("hotpotqa-100", load_corpus("hotpotqa-100"))
    chosen = tasks.select(kind="comparison", level="medium")
    assert {(t.kind, t.level) for t in chosen} == {("comparison", "medium")}
    assert len(tasks.select(hops=2)) == 100
    with pytest.raises(ConfigurationError, match="'bridge', 'comparison'"):
        tasks.select(kind="riddle")
    with pytest.raises(ConfigurationError, match="did you mean 'level'"):
        tasks.select(levle="easy")


def test_every_shipped_answer_is_usable_and_every_evidence_exists():
    corpus = load_corpus("hotpotqa-100")
    tasks = load_tasks("hotpotqa-100", corpus)
    assert (len(corpus), len(tasks)) == (994, 100)
    assert all(document in corpus for task in tasks for document in task.evidence)
    with pytest.raises(CorpusError, match="shipped: hotpotqa-100"):
        load_corpus("hotpotqa")
    with pytest.raises(CorpusError, match="shipped: hotpotqa-100"):
        load_tasks("hotpotqa", corpus)


@pytest.mark.parametrize("answers", [(), ("",), (" ",), "Paris", (1,), None])
def test_a_task_without_a_usable_answer_is_refused(answers):
    with pytest.raises(CorpusError, match="task 't': answers must be"):
        TaskSet([Task("t", "Who?", answers)])


def test_a_criterion_must_be_plain():
    tasks = TaskSet([Task("t", "Who?", ("Ann",))])
    with pytest.raises(ConfigurationError, match="'kind' must be a text or a number"):
        tasks.select(kind=["bridge"])
