"""ChatPolicy and a wire that breaks: nothing is lost, nothing is doubled, all is said clearly."""

import importlib.util
import json
import random
import time
from email.utils import formatdate

import numpy as np
import pytest

if importlib.util.find_spec("openai") is None or importlib.util.find_spec("fastapi") is None:
    pytest.skip("needs the extras llm and serve", allow_module_level=True)

import loopback
from loopback import ENV, error, search_then_answer

from seekgym.agents.llm import ChatPolicy
from seekgym.agents.llm.endpoint import Retries
from seekgym.agents.rollouts import generate, read_trajectories, replay
from seekgym.corpora import BackendError, ConfigurationError

KEY = "sk-a-very-secret-key"
PASSING = {
    "429": ("status", 429, {}, error("slow down")),
    "408": ("status", 408, {}, error("too slow")),
    "409": ("status", 409, {}, error("busy")),
    "500": ("status", 500, {}, error("oh")),
    "502": ("status", 502, {}, "<html>bad gateway</html>"),
    "503": ("status", 503, {}, error("starting")),
    "504": ("status", 504, {}, "late"),
    "529": ("status", 529, {}, error("overloaded")),
    "no choices": ("body", {"choices": [], "usage": None}),
    "null choices": ("body", {"choices": None}),
    "a page": ("body", "<html>welcome</html>"),
    "parts": ("body", {"choices": [{"message": {"content": [1]}, "finish_reason": "stop"}]}),
    "cut JSON": ("body", '{"choices": [{"mess'),
    "drop": "drop",
    "hang": "hang",
}
STREAMS = {
    "drop": "drop",
    "half": "half",
    "hang": "hang",
    "429": PASSING["429"],
    "500": PASSING["500"],
    "error event": ("events", 'data: {"error": {"message": "engine died"}}\n\n'),
    "no event": ("events", ""),
}


@pytest.fixture(scope="module")
def wire():
    with loopback.wire() as wire:
        yield wire


@pytest.fixture(scope="module")
def undisturbed(wire):
    return wire.play(search_then_answer, episodes=6)


def without_usage(trajectories):
    return [json.loads(t.to_json()) | {"usage": None} for t in trajectories]


@pytest.mark.parametrize(
    ("fault", "stream"),
    [*((fault, False) for fault in PASSING), *((fault, True) for fault in STREAMS)],
)
def test_a_fault_that_passes_changes_no_trajectory(wire, undisturbed, fault, stream):
    made = (STREAMS if stream else PASSING)[fault]

    def plan(body, attempt):
        return made if attempt < 2 else None

    timeout_s = 0.3 if fault == "hang" else 20
    played = wire.play(search_then_answer, plan, episodes=6, stream=stream, timeout_s=timeout_s)
    assert without_usage(played) == without_usage(undisturbed)
    assert all(t.usage["retries"] == 4 for t in played)
    assert all(t.usage["requests"] == 6 for t in played)
    assert all(t.usage["prompt_tokens"] == 20 for t in played)
    assert wire.faults.refused.total() == 24
    assert set(wire.faults.served.values()) == {1}


def test_many_faults_in_any_order_lose_nothing_and_double_nothing(wire):
    calm = wire.play(search_then_answer, episodes=40, concurrency=8)
    draws = random.Random(0)
    faults = [PASSING[name] for name in ("429", "500", "503", "no choices", "drop")]

    def plan(body, attempt):
        if attempt < 3 and draws.random() < 0.5:
            return draws.choice(faults)
        return ("slow", draws.random() * 0.02)

    stormy = wire.play(search_then_answer, plan, episodes=40, concurrency=8)
    assert without_usage(stormy) == without_usage(calm)
    assert wire.faults.refused.total() > 40
    made = wire.faults.refused
    assert sum(t.usage["retries"] for t in stormy) == made.total() - made["slow"]
    assert len(wire.asked) == 80 + made["drop"]
    assert set(wire.faults.served.values()) == {1}


@pytest.mark.parametrize("fault", ["500", "429", "drop", "hang", "no choices"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_fault_that_stays_loses_its_episode_alone(wire, undisturbed, fault, stream):
    lost = undisturbed[2]

    def plan(body, attempt):
        has_begun = len(body["messages"]) > 2
        if body["messages"][1]["content"] == lost.question and has_begun:
            return PASSING[fault]
        return None

    played = wire.play(
        search_then_answer,
        plan,
        episodes=6,
        stream=stream,
        timeout_s=0.5 if fault == "hang" else 20,
        retries=Retries(count=2, first_wait_s=0.001),
    )
    hit = [t for t in played if t.question == lost.question]
    others = [t for t in played if t.question != lost.question]
    kept = [t for t in undisturbed if t.question != lost.question]
    assert without_usage(others) == without_usage(kept)
    for trajectory in hit:
        assert trajectory.outcome["valid"] is False
        assert trajectory.outcome["failure"] == "policy"
        assert "asked 3 times" in trajectory.outcome["reason"]
        assert trajectory.outcome["exact_match"] is None
        assert len(trajectory.turns) == 1
        assert trajectory.usage["retries"] == 2


def test_retry_after_is_waited_for_and_no_less(wire):
    times = []

    def plan(body, attempt):
        times.append(time.monotonic())
        return ("status", 429, {"retry-after": "0.3"}, error("wait")) if attempt < 1 else None

    [trajectory] = wire.play(search_then_answer, plan)
    assert trajectory.usage["retries"] == 2
    assert times[1] - times[0] >= 0.3
    assert times[3] - times[2] >= 0.3


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "3600"},
        {"retry-after-ms": "3600000"},
        {"retry-after": formatdate(time.time() + 3600, usegmt=True)},
    ],
)
def test_a_server_that_asks_for_an_hour_is_not_asked_again(wire, headers):
    def plan(body, attempt):
        return ("status", 429, headers, error("quota of the day"))

    [trajectory] = wire.play(search_then_answer, plan)
    assert trajectory.outcome["valid"] is False
    assert "asks to wait 3" in trajectory.outcome["reason"]
    assert trajectory.usage["requests"] == 1


@pytest.mark.parametrize("value", ["soon", "-5", "", "nan", "Wed, 99 Foo 2026"])
def test_a_retry_after_that_makes_no_sense_is_no_wait(wire, value):
    def plan(body, attempt):
        return ("status", 503, {"retry-after": value}, error("x")) if attempt < 1 else None

    [trajectory] = wire.play(search_then_answer, plan)
    assert trajectory.outcome["valid"] is True


def test_waits_grow_and_stay_in_their_bounds():
    retries = Retries(count=9, first_wait_s=0.5, longest_wait_s=8.0)
    generator = np.random.default_rng(0)
    for attempt in range(1, 10):
        longest = min(0.5 * 2 ** (attempt - 1), 8.0)
        waits = [retries.wait_s(attempt, generator) for _ in range(200)]
        assert longest / 2 <= min(waits) < max(waits) <= longest
    with pytest.raises(ConfigurationError, match="first_wait_s must be at least 0"):
        Retries(first_wait_s=-1.0)
    with pytest.raises(ConfigurationError, match=r"retries\.count must be a whole number"):
        Retries(count=-1)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (("status", 401, {}, error(f"Incorrect API key provided: {KEY}")), "401.*api_key="),
        (("status", 403, {}, error("no")), "403.*api_key="),
        (("status", 404, {}, error("no such model")), "'scripted'.*404.*v1/models"),
        (("status", 404, {}, "<html>"), "404"),
        (("status", 402, {}, error("pay")), "no money left"),
        (("status", 429, {}, error("quota", "insufficient_quota")), "no money left"),
        (("status", 400, {}, error("unknown field: seed")), "400: unknown field: seed"),
        (("status", 422, {}, {"detail": [{"loc": ["body", "stop"]}]}), "422.*stop"),
        (("status", 501, {}, error("no tools here")), "501: no tools here"),
    ],
)
def test_a_refusal_that_meets_every_request_ends_the_run_and_says_the_way_out(wire, fault, words):
    with pytest.raises(BackendError, match=words) as caught:
        wire.play(search_then_answer, lambda body, attempt: fault, episodes=8, api_key=KEY)
    assert KEY not in str(caught.value)
    assert wire.faults.refused.total() <= 8


def test_the_key_is_never_recorded_nor_shown(wire, tmp_path):
    fault = ("status", 500, {}, error(f"key {KEY} has trouble"))
    retries = Retries(count=0)
    path = tmp_path / "run.jsonl"
    plan = lambda body, attempt: fault  # noqa: E731
    wire.play(search_then_answer, plan, api_key=KEY, retries=retries, path=path)
    written = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "has trouble" in written
    assert KEY not in written
    assert KEY not in repr(ChatPolicy("http://127.0.0.1:1/v1", "m", api_key=KEY))


@pytest.mark.parametrize(
    ("status", "message", "code", "words"),
    [
        (400, "This model's maximum context length is 64 tokens", None, "context overflow"),
        (400, "x", "context_length_exceeded", "context overflow"),
        (400, "the request exceeds the available context size", None, "context overflow"),
        (413, "too large", None, "context overflow"),
        (400, "filtered", "content_filter", "content filter"),
        (400, "a bad template", None, "a bad template"),
    ],
)
def test_a_refusal_of_one_episode_ends_that_alone(wire, undisturbed, status, message, code, words):
    lost = undisturbed[3].question

    def plan(body, attempt):
        is_hit = body["messages"][1]["content"] == lost and len(body["messages"]) > 2
        return ("status", status, {}, error(message, code)) if is_hit else None

    played = wire.play(search_then_answer, plan, episodes=6)
    for trajectory in played:
        if trajectory.question == lost:
            assert trajectory.outcome["valid"] is False
            assert words in trajectory.outcome["reason"]
            assert len(trajectory.turns) == 1
        else:
            assert trajectory.outcome["valid"] is True
            assert replay(trajectory) == []


def test_a_run_that_ends_keeps_what_is_finished_and_goes_on(wire, tmp_path):
    path = tmp_path / "run.jsonl"
    seen = []

    def revoked(body, attempt):
        seen.append(body)
        return ("status", 401, {}, error("revoked")) if len(seen) > 10 else None

    with pytest.raises(BackendError, match="revoked"):
        wire.play(search_then_answer, revoked, episodes=12, concurrency=2, path=path)
    kept = [trajectory.id for trajectory in read_trajectories(path)]
    assert 3 <= len(kept) <= 5
    whole = wire.play(search_then_answer, episodes=12, concurrency=2, path=path)
    assert [t.id for t in whole] == [f"{group}-0" for group in range(12)]
    assert len(wire.asked) == 2 * (12 - len(kept))
    assert without_usage(whole) == without_usage(wire.play(search_then_answer, episodes=12))


def test_a_server_that_is_not_there_ends_the_run(unused_port):
    policy = ChatPolicy(
        f"http://user:secret@127.0.0.1:{unused_port}/v1",
        "m",
        retries=Retries(count=1, first_wait_s=0.001),
    )
    with pytest.raises(BackendError, match=r"the connection failed.*asked 2 times") as caught:
        generate(policy, ENV, episodes=4)
    assert "secret" not in str(caught.value)


@pytest.fixture
def unused_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_an_address_that_serves_pages_ends_the_run(wire):
    with pytest.raises(BackendError, match="does base_url end in /v1"):
        wire.play(
            search_then_answer,
            lambda body, attempt: PASSING["a page"],
            retries=Retries(count=1, first_wait_s=0.001),
        )


def test_a_caller_that_leaves_early_waits_for_no_reply(wire):
    def stop(trajectory):
        raise KeyboardInterrupt

    first = wire.play(search_then_answer, episodes=1)[0].question

    def plan(body, attempt):
        return None if body["messages"][1]["content"] == first else "hang"

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wire.play(search_then_answer, plan, episodes=4, on_finished=stop)
    assert time.monotonic() - begun < 5


def test_tokens_that_a_server_does_not_count_are_left_out(wire):
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
    [trajectory] = wire.play(
        search_then_answer, lambda _, attempt: ("body", body), arguments={"max_turns": 2}
    )
    assert trajectory.usage == {"requests": 2, "retries": 0}


def test_cached_tokens_have_their_price(wire):
    from seekgym.agents.llm.endpoint import Prices

    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_tokens": 110,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    choices = [{"message": {"content": "x"}, "finish_reason": "stop"}]
    [trajectory] = wire.play(
        search_then_answer,
        lambda _, attempt: ("body", {"choices": choices, "usage": usage}),
        arguments={"max_turns": 2},
        prices=Prices(prompt=1.0, completion=4.0, cached=0.5),
    )
    assert trajectory.usage["cached_tokens"] == 120
    assert trajectory.usage["cost"] == pytest.approx(2 * (40 + 60 * 0.5 + 10 * 4) / 1e6)
