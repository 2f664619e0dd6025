"""Faults that users of such systems reported in public threads, each as a test of its kind.

The name of each test holds the number of its row in the list of reports; tests of a kind that
has a file of its own stand there (scoring, protocols, retrieval, vectors, conformance).
"""

import json
import pickle

import gymnasium as gym
import numpy as np
import pytest
from registered import every_environment

from seekgym.agents import OracleAgent, RandomAgent
from seekgym.agents.rollouts import play, read_trajectories, replay, write_trajectories
from seekgym.corpora import BM25Retriever, Corpus, CorpusError, Document, Task, TaskSet
from seekgym.envs import QAEnv
from seekgym.envs.protocols import extract_answer, get_protocol
from seekgym.envs.scoring import cover_exact_match, exact_match, f1
from seekgym.envs.wrappers import TextProtocol


def search(query):
    return {"name": "search", "arguments": {"query": query}}


def answer(text):
    return {"name": "answer", "arguments": {"text": text}}


def small(*texts, **arguments):
    documents = [Document(f"d{i}", "", text) for i, text in enumerate(texts)]
    tasks = TaskSet([Task("t", "Who?", ("Paris",), ("d0",))])
    return QAEnv(Corpus.from_documents(documents), tasks, **arguments)


def test_001_only_the_agents_own_text_is_scored():
    env = TextProtocol(small("x"), "search-r1")
    _, info = env.reset()
    assert "<answer>Beijing</answer>" in info["system_prompt"]
    assert env.step("<answer>Paris</answer>")[1] == 1.0
    assert extract_answer("<answer>Paris</answer>") == "Paris"


def test_002_mismatched_tags_lose_the_format_reward_but_not_the_answer():
    env = TextProtocol(small("x", rewards="search-r1-v0.3"), "search-r1")
    env.reset()
    assert env.step("<think>Hello</tool><answer>Paris</answer>")[1] == 0.8


@pytest.mark.parametrize(  # a menu may lack what is needed
    "environment", [row for row in every_environment() if not row.values[0].is_menu]
)
def test_004_a_perfect_agent_reaches_the_maximum(environment):
    env = gym.make(environment.id)
    total = play(env, OracleAgent(env), seed=0).total_reward
    if env.unwrapped.is_best_reachable:
        assert total == env.unwrapped.best_return
    else:
        assert 0 < total <= env.unwrapped.best_return


def test_005_the_second_of_two_actions_is_never_dropped_silently():
    env = TextProtocol(small("a", "b"), "search-r1")
    env.reset()
    observation, *_, info = env.step("<search>a</search><search>b</search>")
    assert info["documents"] == ("d0",)
    assert "Only the first action was run" in observation


@pytest.mark.parametrize(
    "text", ["</search>who<search>", "</answer>x<answer>", "<search>who was the"]
)
def test_007_076_broken_or_cut_tags_are_recoverable_and_no_answer(text):
    env = TextProtocol(small("x"), "search-r1")
    env.reset()
    _, _, terminated, truncated, info = env.step(text)
    assert info["error"] == "unclosed_tag"
    assert not terminated
    assert not truncated
    assert env.step("<answer>Paris</answer>")[1] == 1.0


@pytest.mark.parametrize(
    "call", ['{"name":"search"}', '{"arguments":{}}', '{"name":null,"arguments":null}']
)
def test_010_a_call_without_arguments_is_explained_and_the_episode_goes_on(call):
    env = TextProtocol(small("x"), "hermes")
    env.reset()
    observation, _, terminated, _, info = env.step(f"<tool_call>{call}</tool_call>")
    assert info["error"] in ("bad_arguments", "unknown_tool")
    assert not terminated
    assert len(observation) > 40


def test_011_041_an_agent_that_searches_for_ever_is_stopped():
    class Empty:
        name = "empty"

        def search(self, queries, k):
            return [[] for _ in queries]

    env = small("x", retriever=Empty())
    env.reset()
    steps = [env.step(search(f"query {i}")) for i in range(8)]
    assert "No results" in steps[0][0]
    assert [step[3] for step in steps] == [False] * 7 + [True]
    assert "budget is spent" in steps[-1][0]


def test_013_the_first_answer_of_a_turn_counts_and_the_last_of_a_trajectory():
    text = "<think>a</think><answer>1</answer><think>b</think><answer>2</answer>"
    tools = [tool.signature for tool in small("x").tools.values()]
    assert get_protocol("search-r1", tools).decode(text)["arguments"] == {"text": "1"}
    assert extract_answer(text) == "2"


@pytest.mark.parametrize(("prediction", "expected"), [("21", 0), ("12", 0), ("14", 0), ("1", 1)])
def test_019_a_gold_inside_a_longer_number_is_no_match(prediction, expected):
    assert exact_match(prediction, ["1"]) == expected
    assert cover_exact_match(prediction, ["1"]) == expected


def test_020_022_023_golds_that_normalise_to_nothing():
    assert exact_match("B", ["A"]) == 0.0
    assert exact_match("A", ["A"]) == 1.0
    assert exact_match("Paris", ["Paris", "???"]) == 1.0
    assert f1("Paris", ["Paris", "???"]) == 1.0
    for gold in ("The The", "!!!"):
        assert (exact_match(gold, [gold]), f1(gold, [gold])) == (1.0, 1.0)


def test_025_no_answer_is_scored_zero_not_an_error():
    env = TextProtocol(small("x", on_invalid="end"), "search-r1")
    env.reset()
    assert env.step("FINAL ANSWER: Paris")[1] == 0.0


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_026_json_that_is_no_json_is_refused_with_its_line(write, constant):
    env = gym.make("seekgym/QA-v0")
    line = play(env, OracleAgent(env), seed=0).to_json().encode()
    wrong = line.replace(b'"exact_match": 1.0', b'"exact_match": %s' % constant.encode())
    path = write("t.jsonl", line + b"\n" + wrong)
    with pytest.raises(CorpusError, match="line 2"):
        list(read_trajectories(path))
    with pytest.raises(CorpusError, match="line 2"):
        Corpus.from_jsonl(
            write("c.jsonl", b'{"id":"a","text":"x"}\n{"id":"b","text":%s}' % constant.encode())
        )


def test_031_queries_without_a_known_word_give_no_results():
    env = small("the cat", "the dog")
    env.reset()
    for query in ("zzzqqq", "?!", "…"):
        observation, *_, info = env.step(search(query))
        assert (info["documents"], info["error"]) == ((), None)
        assert "No results" in observation
    env.reset()
    assert env.step(search(""))[4]["error"] == "empty_query"
    assert env.step(search("the"))[4]["documents"] == ("d0", "d1")
    empty = BM25Retriever(Corpus.from_documents([Document("a", "", ""), Document("b", "", "")]))
    assert empty.search(["", "x", "the"], 3) == [[], [], []]


def test_032_equal_documents_score_equally_in_order():
    corpus = Corpus.from_documents(
        Document(f"d{i}", "", text)
        for i, text in enumerate(["foo", "dog", "baz", "quick god", "quick fox"])
    )
    [hits] = BM25Retriever(corpus).search(["quick"], 3)
    assert [hit.document_id for hit in hits] == ["d3", "d4"]
    assert hits[0].score == hits[1].score


def test_035_a_long_query_is_cut_with_a_notice():
    env = small("needle", "hay")
    env.reset()
    for query in ("needle " + " ".join(f"w{i}" for i in range(2_000)), "needle " * 150_000):
        observation, *_, info = env.step(search(query))
        assert info["documents"] == ("d0",)
        assert "Only the first 2000 characters" in observation


def test_037_dashes_and_long_vowels_in_queries():
    env = small("Ōsaka and Kyōto", "Tokyo")
    env.reset()
    assert env.step(search("Ōsaka – Kyōto"))[4]["documents"] == ("d0",)
    assert env.step(search("Osaka Kyoto"))[4]["documents"] == ("d0",)


def test_040_the_same_document_is_counted_once():
    env = small("same text", "same text", "same text")
    env.reset()
    _, *_, info = env.step(search("same"))
    assert info["documents"] == ("d0", "d1", "d2")
    *_, info = env.step(search("text"))
    assert info["new_documents"] == 0.0
    *_, info = env.step(answer("Paris"))
    assert info["evidence_recall"] == 1.0


def test_062_observations_and_infos_of_the_past_do_not_change(env):
    env.reset(seed=0)
    observation, *_, info = env.step(search("Nolan"))
    kept = (observation, pickle.dumps(info))
    env.step(answer("x"))
    env.reset()
    assert (observation, pickle.dumps(info)) == kept


def test_065_environments_with_the_same_seed_do_not_disturb_each_other():
    alone, first, second = QAEnv(), QAEnv(), QAEnv()
    expected = [alone.reset(seed=4)[0], *(alone.reset()[0] for _ in range(5))]
    found = [(first.reset(seed=4)[0], second.reset(seed=4)[0])]
    for _ in range(5):
        np.random.seed(0)
        found.append((first.reset()[0], second.reset()[0]))
    assert found == [(question, question) for question in expected]


def test_071_sixteen_environments_on_one_retriever_share_no_state():
    envs = [QAEnv() for _ in range(16)]
    assert len({id(env.retriever) for env in envs}) == 1
    for number, env in enumerate(envs):
        env.reset(seed=number)
    for turn in range(4):
        for number, env in enumerate(envs):
            if number % 4 >= turn:
                env.step(search("Nolan"))
    for number, env in enumerate(envs):
        *_, info = env.step(answer("x"))
        assert info["searches"] == number % 4 + 1
        assert info["turn"] == number % 4 + 2


@pytest.mark.parametrize("text", ["\ud83c", "Paris\udcb0", "a\ud800b\udfffc"])
def test_073_lone_surrogates_survive_the_episode_and_the_log(text, tmp_path):
    class Says(RandomAgent):
        name = "says"

        def act(self, observation, info):
            return search(text) if info["turn"] == 0 else answer(text)

    env = gym.make("seekgym/QA-v0")
    trajectory = play(env, Says(env), seed=0)
    assert trajectory.outcome["exact_match"] == 0.0
    write_trajectories([trajectory], tmp_path / "t.jsonl")
    [again] = read_trajectories(tmp_path / "t.jsonl")
    assert replay(again) == []
    assert "\ufffd" in again.outcome["answer"]
    wrapped = TextProtocol(env, "search-r1")
    wrapped.reset(seed=0)
    observation, *_ = wrapped.step(f"<search>{text}</search>")
    json.dumps(observation).encode()


def test_074_the_last_turn_asks_for_the_answer_and_keeps_what_was_found():
    env = small("needle", max_turns=3, last_turn="answer")
    env.reset()
    env.step(search("needle"))
    observation, *_ = env.step(search("again"))
    assert "last turn" in observation
    *_, info = env.step(search("and again"))
    assert (info["error"], info["evidence_recall"]) == ("last_turn", 1.0)
