"""ChatPolicy over a real wire: what becomes of each message, and how episodes are played."""

import importlib.util
import json
import re
import sys

import pytest

if importlib.util.find_spec("openai") is None or importlib.util.find_spec("fastapi") is None:
    pytest.skip("needs the extras llm and serve", allow_module_level=True)

import loopback
from loopback import call, calls, search_then_answer, small_env

from seekgym.agents.llm import ChatPolicy
from seekgym.agents.llm.endpoint import Prices
from seekgym.agents.llm.serve import Completion, create_app
from seekgym.agents.rollouts import (
    Trajectory,
    replay,
)
from seekgym.cli.serving import serve_model
from seekgym.corpora import ConfigurationError, MissingExtraError
from seekgym.corpora.documents import Record


@pytest.fixture(scope="module")
def wire():
    with loopback.wire() as wire:
        yield wire


def in_turn(*completions):
    """Return a script that says one thing after the other, and then answers."""

    def script(messages):
        said = sum(message["role"] == "assistant" for message in messages)
        return (
            completions[said] if said < len(completions) else calls(call("answer", {"text": "x"}))
        )

    return script


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_are_played_and_counted(wire, stream):
    [trajectory] = wire.play(
        search_then_answer, stream=stream, prices=Prices(prompt=2.0, completion=10.0)
    )
    assert [turn.action["name"] for turn in trajectory.turns] == ["search", "answer"]
    assert [turn.finish for turn in trajectory.turns] == ["stop", "stop"]
    assert trajectory.usage == {
        "requests": 2,
        "retries": 0,
        "prompt_tokens": 20,
        "completion_tokens": 6,
        "cached_tokens": 0,
        "cost": pytest.approx((20 * 2 + 6 * 10) / 1e6),
    }
    assert trajectory.outcome["valid"] is True
    assert replay(trajectory) == []
    [_, tools, _] = wire.asked[0]
    assert [tool["function"]["name"] for tool in tools] == ["search", "read", "answer"]


def test_a_stream_gives_the_same_trajectories(wire):
    whole = wire.play(search_then_answer, episodes=8)
    pieces = wire.play(search_then_answer, episodes=8, stream=True)
    assert [t.to_json() for t in pieces] == [t.to_json() for t in whole]


@pytest.mark.parametrize(
    ("protocol", "text", "stop"),
    [
        ("search-r1", "<think>I look.</think><search>Lisbon", ["</search>", "</answer>"]),
        (
            "hermes",
            '<tool_call>{"name": "search", "arguments": {"query": "Lisbon"}}',
            ["</tool_call>"],
        ),
        ("react", "Thought: I look.\nAction: search[Lisbon]", ["\nObservation:"]),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_text_protocols_get_back_the_stop_string_that_servers_take_off(
    wire, protocol, text, stop, stream
):
    [trajectory] = wire.play(
        lambda messages: text, protocol=protocol, stream=stream, arguments={"max_turns": 2}
    )
    assert [turn.error for turn in trajectory.turns] == [None, None]
    assert trajectory.outcome["searches"] == 2
    assert replay(trajectory) == []
    messages, tools, sampling = wire.asked[1]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[0]["content"].startswith("Answer the question")
    assert messages[1]["content"] == trajectory.question
    assert messages[2]["content"] == trajectory.turns[0].action
    assert messages[3]["content"] == trajectory.turns[0].observation
    assert list(sampling.stop) == stop
    assert not tools


def test_005_of_several_calls_the_first_is_run_and_the_others_are_answered(wire):
    both = calls(call("search", {"query": "a"}, "one"), call("search", {"query": "b"}, "two"))
    [trajectory] = wire.play(in_turn(both))
    first = trajectory.turns[0]
    assert first.action["arguments"] == {"query": "a"}
    assert "Only the first of 2 tool calls was run" in first.observation
    assert first.action["well_formed"] is False
    assert first.action["ignored"] == [
        {"id": "two", "name": "search", "arguments": '{"query": "b"}'}
    ]
    messages, *_ = wire.asked[1]
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert results == {
        "one": first.observation,
        "two": "Not run: only one tool call of a message is run.",
    }
    assert replay(trajectory) == []


def test_008_a_broken_call_is_passed_over_for_a_good_one(wire):
    both = calls(call("search", '{"query": ', "bad"), call("search", {"query": "b"}, "good"))
    [trajectory] = wire.play(in_turn(both))
    first = trajectory.turns[0]
    assert (first.error, first.action["arguments"]) == (None, {"query": "b"})
    assert "Only the first that could be read of 2 tool calls was run" in first.observation
    messages, *_ = wire.asked[1]
    assert {m["tool_call_id"] for m in messages if m["role"] == "tool"} == {"good", "bad"}


@pytest.mark.parametrize(
    "arguments", ['{"query": "a"', "query", "[1, 2]", "null", '{"query": NaN}', "{" * 5000, '"x"']
)
def test_malformed_arguments_are_an_invalid_call_that_can_be_played_again(wire, arguments):
    [trajectory] = wire.play(in_turn(calls(call("search", arguments))))
    first = trajectory.turns[0]
    assert first.error == "bad_arguments"
    assert first.action["arguments"] == arguments
    sent_back = wire.asked[1][0][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent_back) == {"malformed": arguments}
    assert trajectory.outcome["answer"] == "x"
    read = Trajectory.from_record(Record("f", 1, json.loads(trajectory.to_json())))
    assert replay(read) == []


@pytest.mark.parametrize("arguments", ['"{\\"query\\": \\"a\\"}"', '{"query": "a"}'])
def test_arguments_that_a_server_encodes_twice_are_read(wire, arguments):
    [trajectory] = wire.play(in_turn(calls(call("search", arguments))))
    assert trajectory.turns[0].action["arguments"] == {"query": "a"}


@pytest.mark.parametrize("name", ["", "no such tool", "a" * 100, "x\ud83cy"])
def test_010_a_tool_that_is_not_there_is_a_move_and_its_name_goes_back_as_servers_take_it(
    wire, name
):
    [trajectory] = wire.play(in_turn(calls(call(name, {}))))
    assert trajectory.turns[0].error == "unknown_tool"
    assert re.fullmatch(
        "[a-zA-Z0-9_-]{1,64}", wire.asked[1][0][2]["tool_calls"][0]["function"]["name"]
    )


@pytest.mark.parametrize("text", ["", "I think it is Paris.", "<answer>Paris</answer>"])
def test_a_message_without_a_call_is_an_invalid_move_and_never_an_answer(wire, text):
    [trajectory] = wire.play(in_turn(Completion(text)))
    first = trajectory.turns[0]
    assert (first.action, first.error) == (text, "malformed")
    messages, *_ = wire.asked[1]
    assert messages[-2] == {"role": "assistant", "content": text}
    assert messages[-1] == {"role": "user", "content": first.observation}
    assert trajectory.outcome["invalid_calls"] == 1


@pytest.mark.parametrize(
    ("protocol", "completion"),
    [
        ("tools", Completion("", (call("answer", {"text": "Paris"}),), "length")),
        ("tools", Completion("It is", (), "length")),
        ("search-r1", Completion("<search>who was the", (), "length")),
        ("search-r1", Completion("<answer>Paris</answer>", (), "length")),
        ("search-r1", Completion("<answer>Paris</answer>", (), "content_filter")),
        ("tools", Completion("", (call("answer", {"text": "Paris"}),), "content_filter")),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_076_a_message_that_was_cut_off_is_no_answer(wire, protocol, completion, stream):
    [trajectory] = wire.play(
        lambda messages: completion,
        protocol=protocol,
        stream=stream,
        env=small_env(max_turns=2),
    )
    assert [turn.error for turn in trajectory.turns] == ["cut_off", "cut_off"]
    assert [turn.finish for turn in trajectory.turns] == ["length", "length"]
    assert trajectory.outcome["answer"] is None
    assert trajectory.total_reward == 0.0


@pytest.mark.parametrize(
    ("protocol", "completion"),
    [
        ("search-r1", Completion("<search>\ud83c</search>")),
        ("search-r1", Completion("<answer>\udcb0")),
        ("tools", calls(call("search", '{"query": "\\ud83c"}'))),
        ("tools", calls(call("search", '{"query": "\ud83c'))),
        ("tools", Completion("\udcb0")),
        ("tools", calls(call("search", {"query": "x"}, "\ud83c"), text="\ud83c")),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_073_lone_surrogates_survive_the_wire_the_log_and_the_next_request(
    wire, protocol, completion, stream
):
    [trajectory] = wire.play(
        lambda messages: completion, protocol=protocol, stream=stream, arguments={"max_turns": 3}
    )
    assert trajectory.outcome["valid"] is True
    assert trajectory.outcome["exact_match"] == 0.0
    line = trajectory.to_json()
    assert "\ufffd" in line
    read = Trajectory.from_record(Record("f", 1, json.loads(line)))
    assert read.turns == trajectory.turns
    assert replay(read) == []


def test_017_control_tokens_in_documents_reach_no_model(wire):
    say = in_turn(calls(call("read", {"document_id": "d1"})))
    [trajectory] = wire.play(say, env=small_env())
    assert "<|im_end|>" in trajectory.turns[0].observation
    assert "<|im_end|>" not in json.dumps(wire.asked[1][0])
    assert "‹|im_end|>" in wire.asked[1][0][-1]["content"]


def as_body(message, **choice):
    """Return a plan that answers each request with this message."""
    choices = [{"message": message, "finish_reason": "stop", **choice}]
    return lambda body, attempt: ("body", {"choices": choices})


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ({"name": None, "arguments": None}, "unknown_tool"),
        ({"name": "search"}, "bad_arguments"),
        ({"arguments": {}}, "unknown_tool"),
        ({"name": "search", "arguments": {"query": "x"}}, None),
        ({"name": "search", "arguments": ["x"]}, "bad_arguments"),
    ],
)
def test_010_calls_that_lack_parts_or_hold_objects_are_read(wire, function, error):
    plan = as_body({"content": None, "tool_calls": [{"function": function}]})
    [trajectory] = wire.play(search_then_answer, plan, arguments={"max_turns": 2})
    assert [turn.error for turn in trajectory.turns] == [error, error]
    assert replay(trajectory) == []


def test_a_server_that_names_the_stop_string_is_believed(wire):
    plan = as_body({"content": "<search>a <answer>b"}, stop_reason="</answer>")
    [trajectory] = wire.play(search_then_answer, plan, protocol="search-r1")
    assert trajectory.outcome["answer"] == "b"


def test_a_refusal_of_the_model_is_its_text(wire):
    plan = as_body({"content": None, "refusal": "I cannot."})
    [trajectory] = wire.play(search_then_answer, plan, arguments={"max_turns": 2})
    assert [turn.action for turn in trajectory.turns] == ["I cannot.", "I cannot."]


def test_what_is_not_installed_is_named(wire, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"openai is not installed.*seekgym\[llm\]"):
        wire.play(search_then_answer)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtraError, match=r"fastapi is not installed.*seekgym\[serve\]"):
        create_app(wire.model)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"uvicorn is not installed.*seekgym\[serve\]"):
        serve_model("tiny")


def test_071_episodes_at_once_do_not_touch_each_other(wire):
    one_by_one = wire.play(search_then_answer, episodes=32, concurrency=1)
    at_once = wire.play(search_then_answer, episodes=32, concurrency=16)
    assert [t.to_json() for t in at_once] == [t.to_json() for t in one_by_one]
    assert len({t.task_id for t in at_once}) > 16


def test_no_more_episodes_than_allowed_are_played_at_once(wire):
    plan = lambda body, attempt: ("slow", 0.05)  # noqa: E731
    wire.play(search_then_answer, plan, episodes=10, concurrency=4)
    assert wire.faults.most_at_once == 4


def test_a_slow_episode_holds_up_no_other_and_the_order_is_that_of_the_plans(wire):
    slowest = wire.play(search_then_answer)[0].question

    def plan(body, attempt):
        return ("slow", 0.4) if body["messages"][1]["content"] == slowest else None

    finished = []
    trajectories = wire.play(
        search_then_answer,
        plan,
        episodes=6,
        concurrency=2,
        on_finished=lambda trajectory: finished.append(trajectory.id),
    )
    assert finished[-1] == "0-0"
    assert [t.id for t in trajectories] == [f"{group}-0" for group in range(6)]


def test_the_same_seed_asks_for_the_same_draws_and_another_for_others(wire):
    def seeds(seed):
        wire.play(search_then_answer, episodes=4, group_size=2, seed=seed)
        return sorted(sampling.seed for _, _, sampling in wire.asked)

    assert seeds(0) == seeds(0)
    assert seeds(0) != seeds(1)
    assert len(set(seeds(0))) == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"base_url": "localhost:8000"}, "base_url must be an address"),
        ({"base_url": ""}, "base_url must be an address"),
        ({"model": ""}, "model must name one"),
        ({"protocol": "hermse"}, "did you mean 'hermes'"),
        ({"concurrency": 0}, "concurrency must be a whole number of at least 1"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1"),
        ({"temperature": -1.0}, "temperature must be at least 0"),
        ({"timeout_s": 0.0}, "timeout_s must be more than 0"),
    ],
)
def test_an_argument_out_of_its_range_is_named(arguments, words):
    with pytest.raises(ConfigurationError, match=words):
        ChatPolicy(**{"base_url": "http://127.0.0.1:1/v1", "model": "m", **arguments})


def test_further_fields_are_sent_and_none_leaves_one_out(wire):
    bodies = []
    extra = {"seed": None, "parallel_tool_calls": False}
    plan = lambda body, attempt: bodies.append(body)  # noqa: E731
    wire.play(search_then_answer, plan, max_tokens=None, extra=extra)
    names = {"model", "messages", "temperature", "tools", "parallel_tool_calls"}
    assert bodies[0].keys() == names
