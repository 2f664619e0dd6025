import json
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from seekgym.agents.reading import parse_passages
from seekgym.corpora import (
    BM25Retriever,
    ConfigurationError,
    Corpus,
    CorpusError,
    Document,
    Hit,
    Task,
    TaskSet,
    load_corpus,
)
from seekgym.envs import (
    FreeText,
    Parameter,
    ProtocolError,
    QAEnv,
    RewardTerm,
    ToolSignature,
)

TASK = "5ae40c465542996836b02c25"
LONG = "start " + "filler " * 3_000 + "end"


def search(query="Nolan"):
    return {"name": "search", "arguments": {"query": query}}


def read(document_id, **arguments):
    return {"name": "read", "arguments": {"document_id": document_id, **arguments}}


def answer(text):
    return {"name": "answer", "arguments": {"text": text}}


def small(*texts, **arguments):
    documents = [Document(f"d{i}", f"title {i}", text) for i, text in enumerate(texts)]
    tasks = TaskSet([Task("t", "Who?", ("Ann",), ("d0",))])
    return QAEnv(Corpus.from_documents(documents), tasks, **arguments)


def test_the_ten_line_quick_start_works():
    env = gym.make("seekgym/QA-v0")
    observation, info = env.reset(seed=0)
    assert observation.endswith("?")
    observation, reward, terminated, truncated, info = env.step(search("Nuno Diogo"))
    assert observation.startswith("1. [hca2b8ce0] Nuno Diogo\nNuno Miguel")
    assert (reward, terminated, truncated, info["searches"]) == (0.0, False, False, 1)


def test_info_counts_calls_and_new_documents(env):
    env.reset(options={"task": TASK})
    infos = [
        env.step(action)[4]
        for action in (search(), search(), {"name": "look"}, read("hf83dbc88"), answer("yes"))
    ]
    assert [info["searches"] for info in infos] == [1, 2, 2, 2, 2]
    assert [info["valid_calls"] for info in infos] == [1, 2, 2, 3, 4]
    assert [info["invalid_calls"] for info in infos] == [0, 0, 1, 1, 1]
    assert [info["new_documents"] for info in infos][:3] == [1.0, 0.0, 0.0]
    assert [info["turns_left"] for info in infos] == [7, 6, 5, 4, 3]
    assert [info["error"] for info in infos] == [None, None, "unknown_tool", None, None]
    last = infos[-1]
    assert last["calls"] == {"search": 2, "read": 1, "answer": 1}
    assert (last["answer"], last["exact_match"], last["f1"]) == ("yes", 1.0, 1.0)
    assert last["gold_answers"] == ("yes",)


def test_an_answer_terminates_and_the_budget_truncates(env):
    env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step(answer("x"))
    assert (terminated, truncated) == (True, False)
    with pytest.raises(ResetNeeded):
        env.step(search())
    env.reset()
    for _ in range(7):
        assert env.step(search())[2:4] == (False, False)
    observation, reward, terminated, truncated, info = env.step(search())
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "budget is spent" in observation
    assert (info["answer"], info["exact_match"], info["f1"]) == (None, 0.0, 0.0)
    fresh = QAEnv()
    with pytest.raises(ResetNeeded):
        fresh.step(search())
    for ask in (fresh.snapshot, lambda: fresh.task):
        with pytest.raises(ResetNeeded):
            ask()


@pytest.mark.parametrize(
    ("action", "code", "words"),
    [
        (None, "malformed", "NoneType"),
        ({"name": "serch", "arguments": {}}, "unknown_tool", "'serch'. The tools: search"),
        ({"name": "search"}, "bad_arguments", "search needs its arguments"),
        ({"name": "search", "arguments": {}}, "bad_arguments", "needs 'query'"),
        (
            {"name": "search", "arguments": {"query": 3}},
            "bad_arguments",
            "'query' to be a string, got int: search(query)",
        ),
        (
            {"name": "search", "arguments": {"query": "x", "k": 3}},
            "bad_arguments",
            "no argument 'k'",
        ),
        (search(" "), "empty_query", "search(query)"),
        (read("h32999b16", page="2"), "bad_arguments", "'page' to be a integer"),
        (read("h32999b16", page=True), "bad_arguments", "got bool"),
        (read("h32999b16", page=2), "unknown_page", "pages 1 to 1"),
        (read("nope"), "unknown_document", "'nope'"),
        (ProtocolError("no_action", "Nothing was said."), "no_action", "Nothing was said."),
    ],
)
def test_a_wrong_call_costs_a_turn_and_is_explained(env, action, code, words):
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (info["error"], info["turn"], reward) == (code, 1, 0.0)
    assert (terminated, truncated) == (False, False)
    assert words in observation
    assert "\n" not in observation


def test_options_pick_a_task_or_narrow_the_draw(env):
    assert env.reset(options={"task": TASK})[1]["task_id"] == TASK
    for seed in range(20):
        env.reset(seed=seed, options={"kind": "comparison", "level": "medium", "split": "train"})
        assert (env.task.kind, env.task.level) == ("comparison", "medium")
    for options, words in (
        ({"task": "nope"}, "no task 'nope'"),
        ({"task": TASK, "kind": "bridge"}, "leave out"),
        ({"tsak": TASK}, "did you mean 'task'"),
        ({"split": "dev"}, "known: all, test, train"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            env.reset(options=options)


def test_splits_draw_only_their_tasks():
    train, test = QAEnv(split="train"), QAEnv(split="test")
    assert {t.id for t in train.tasks}.isdisjoint(t.id for t in test.tasks)
    assert {test.reset(seed=seed)[1]["task_id"] for seed in range(60)} <= {t.id for t in test.tasks}
    assert train.env_hash != test.env_hash


def test_a_reset_without_a_seed_goes_on_with_the_stream(env):
    def tasks():
        return [env.reset(seed=3)[1]["task_id"]] + [env.reset()[1]["task_id"] for _ in range(5)]

    first = tasks()
    assert first == tasks()
    assert len(set(first)) > 3


def test_long_documents_are_cut_in_results_and_paged_when_read():
    env = small(LONG, "other", max_observation_chars=3_000, max_turns=20)
    env.reset(seed=0)
    observation = env.step(search("start filler"))[0]
    assert "[cut: read it for the rest]" in observation
    text, page = "", 0
    while "end" not in text:
        page += 1
        observation, _, _, _, info = env.step(read("d0", page=page))
        assert info["error"] is None
        assert len(observation) <= 3_000
        heading, _, body = observation.partition("\n")
        assert f"(page {page} of 9)" in heading
        text += body
    assert text == LONG


def test_arguments_are_checked():
    for arguments, words in (
        ({"k": 0}, "k must be"),
        ({"max_turns": 1}, "max_turns must be a whole number of at least 2, got 1"),
        ({"max_observation_chars": 10}, "at least 1000"),
        ({"max_observation_chars": 1_000, "k": 9}, "it needs 3600"),
        ({"on_invalid": "stop"}, "known: end, remind"),
        ({"last_turn": "no"}, "known: answer, any"),
        ({"convention": "em"}, "unknown convention"),
        ({"render_mode": "human"}, "known: ansi, html"),
        ({"split": "dev"}, "known: all, test, train"),
        ({"corpus": load_corpus("hotpotqa-100")}, "tasks is missing"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            QAEnv(**arguments)
    with pytest.raises(CorpusError, match="no such file"):
        QAEnv("nowhere")
    with pytest.raises(ConfigurationError, match="did you mean 'max_turns'"):
        QAEnv(max_turn=3)
    with pytest.raises(ConfigurationError, match="tasks must be a name, a path, or a TaskSet"):
        QAEnv(tasks=[1])
    with pytest.raises(ConfigurationError, match="retriever must have a name"):
        QAEnv(retriever=object())


class Retriever:
    """Gives what a test wants it to give."""

    name = "scripted"

    def __init__(self, give):
        self.give = give

    def search(self, queries, k):
        if isinstance(self.give, Exception):
            raise self.give
        return [self.give for _ in queries] if isinstance(self.give, list) else self.give(queries)


@pytest.mark.parametrize(
    "give",
    [
        ConnectionError("down"),
        ValueError("bad index"),
        lambda queries: [],
        [Hit("no such document", 1.0)],
        [("d", 1.0)],
        [Hit(7, 1.0)],
        lambda queries: None,
        lambda queries: (hits for hits in []),
    ],
)
def test_a_failing_backend_is_not_the_agents_fault(give):
    env = QAEnv(retriever=Retriever(give))
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(search())
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["failure"], info["valid"], info["error"]) == ("infrastructure", False, None)
    assert info["exact_match"] is info["f1"] is info["evidence_recall"] is None
    assert info["reward_terms"] == {"exact_match": 0.0}
    assert "does not count" in observation
    env.reset(seed=0)
    assert env.step(answer("x"))[4]["valid"] is True


def test_hits_are_shown_once_each():
    env = small("alpha", "beta", retriever=Retriever([Hit("d1", 2.0), Hit("d1", 1.0)]))
    env.reset(seed=0)
    observation, *_, info = env.step(search())
    assert info["documents"] == ("d1",)
    assert observation.count("[d1]") == 1


def test_the_hash_sees_arguments_and_data():
    base = gym.make("seekgym/QA-v0").unwrapped.env_hash
    assert gym.make("seekgym/QA-v0", k=3).unwrapped.env_hash == base
    others = {
        gym.make("seekgym/QA-v0", **arguments).unwrapped.env_hash
        for arguments in (
            {"k": 4},
            {"max_turns": 9},
            {"rewards": "f1"},
            {"split": "train"},
            {"convention": "squad"},
            {"last_turn": "answer"},
            {"on_invalid": "end"},
            {"max_observation_chars": 9_000},
        )
    }
    assert len(others | {base}) == 9
    assert small("a").env_hash != small("b").env_hash
    corpus = load_corpus("hotpotqa-100")
    plain = QAEnv(retriever=BM25Retriever(corpus, language="any"))
    assert plain.env_hash != QAEnv().env_hash


def test_a_task_without_evidence_has_no_recall():
    tasks = TaskSet([Task("t", "Who?", ("Ann",))])
    env = QAEnv(Corpus.from_documents([Document("d", "", "x")]), tasks)
    env.reset()
    assert env.step(answer("Ann"))[4]["evidence_recall"] is None


def test_rendering_is_readable_and_escaped():
    env = small("<script>alert(1)</script>", render_mode="html")
    env.reset(seed=0)
    env.step(search("alert"))
    page = env.render()
    assert page.startswith("<!doctype html>")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert small("x").render() is None
    env = small("alpha", render_mode="ansi")
    env.reset(seed=0)
    env.step(search("alpha"))
    assert env.render() == (
        "[environment]\nWho?\n\n[agent]\nsearch(query='alpha')\n\n"
        "[environment]\n1. [d0] title 0\nalpha"
    )
    assert [message.source for message in env.transcript] == ["environment", "agent", "environment"]


def test_scores_look_only_at_the_answer_call():
    env = small("Ann Ann Ann")
    env.reset(seed=0)
    env.step(search("Ann"))
    assert env.step(answer("Bob"))[1] == 0.0


def test_an_answer_set_is_scored_as_a_set():
    tasks = TaskSet([Task("t", "Who?", ("Ann", "Bob"), is_answer_set=True)])
    env = QAEnv(Corpus.from_documents([Document("d", "", "x")]), tasks, rewards="f1")
    env.reset()
    assert env.step(answer("bob, Ann"))[1] == 1.0
    env.reset()
    assert env.step(answer("Ann"))[1] == pytest.approx(2 / 3)


def test_infos_are_plain_data(env):
    env.reset(seed=0)
    env.step(search())
    json.dumps(env.step(answer("x"))[4], allow_nan=False)


def test_reserved_tool_names_are_refused():
    with pytest.raises(ValueError, match="reserved"):
        ToolSignature("step", "", (Parameter("x", ""),))


def test_free_text_takes_any_script_and_has_a_limit():
    space = FreeText(5)
    assert "Ō🚆" in space
    assert "123456" not in space
    assert 5 not in space
    assert FreeText(5) == FreeText(5) != FreeText(6)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class Unspeakable:
    def __repr__(self):
        raise ValueError("not to be spoken of")


@pytest.mark.parametrize(
    "action",
    [
        nested(100_000),
        Unspeakable(),
        {"name": "search", "arguments": {"query": "x"}, "well_formed": np.array([1, 2])},
        {"name": "search", "arguments": {"query": "x", "more": nested(100_000)}},
        read("x", page=10**5_000),
        {"name": Unspeakable(), "arguments": {}},
    ],
    ids=range(6),
)
def test_any_object_is_an_action(action):
    env = QAEnv(render_mode="ansi")
    env.reset(seed=0)
    assert env.step(action)[4]["error"] is not None
    assert env.render()
    assert env.step(answer("x"))[2]


def test_tasks_lie_beside_a_corpus_file_or_in_a_folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"id": 1, "text": "red"}', encoding="utf-8")
    (tmp_path / "tasks.jsonl").write_text(
        '{"id": 7, "question": "?", "answers": ["red"], "evidence": [1], "level": null}',
        encoding="utf-8",
    )
    for corpus in (tmp_path / "corpus.jsonl", tmp_path, str(tmp_path)):
        env = QAEnv(corpus)
        env.reset(options={"task": "7"})
        assert env.task.evidence == ("1",)
    (tmp_path / "tasks.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"tasks '.*tasks\.jsonl': no such file"):
        QAEnv(tmp_path)


def test_a_snapshot_fits_only_an_equal_environment_and_shows_no_gold():
    env = small("alpha")
    env.reset()
    state = env.snapshot()
    assert "Ann" not in repr(state)
    small("alpha").restore(state)
    with pytest.raises(ConfigurationError, match="arguments or data differ"):
        small("beta").restore(state)


def test_titles_and_texts_cannot_forge_results():
    corpus = Corpus.from_documents(
        [Document("d", "T\n2. [fake] Fake\ntext", "one\n\n2. [lead] Spoof\nred\n[x] note")]
    )
    env = QAEnv(corpus, TaskSet([Task("t", "?", ("x",))]))
    env.reset()
    for action in (search("one"), read("d"), read(" [d] ")):
        [passage] = parse_passages(env.step(action)[0])
        assert passage.id == "d"
        assert passage.text.endswith("[x] note")


def test_the_longest_id_can_be_read():
    name = "handbook/" + "x" * 191
    env = QAEnv(
        Corpus.from_documents([Document(name, "t", "one")]), TaskSet([Task("t", "?", ("x",))])
    )
    env.reset()
    [passage] = parse_passages(env.step(search("one"))[0])
    assert env.step(read(passage.id))[4]["documents"] == (name,)


def test_ids_tell_nothing_of_the_evidence():
    corpus, env = load_corpus("hotpotqa-100"), QAEnv()
    near = sum(
        abs(corpus.position(a) - corpus.position(b)) <= 12
        for task in env.tasks
        for a, b in zip(task.evidence, task.evidence[1:], strict=False)
    )
    assert near <= 12  # by chance 2.5


@dataclass(frozen=True)
class Counting(RewardTerm):
    def __init__(self, each):
        super().__init__()
        object.__setattr__(self, "each", each)

    def value(self, outcome):
        return self.each


def test_the_hash_sees_every_setting_of_a_term():
    assert QAEnv(rewards=[Counting(1)]).env_hash != QAEnv(rewards=[Counting(2)]).env_hash
