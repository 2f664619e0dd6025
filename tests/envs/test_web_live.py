"""The live web as an environment: recorded once, played again without a network."""

import json

import gymnasium as gym
import pytest
from webserver import web_server

import seekgym  # noqa: F401 - registers the environments
from seekgym.corpora import ConfigurationError

RESULTS = {
    "results": [
        {"url": "http://tower.example/", "title": "A tower", "content": "It is tall."},
        {"url": "http://127.0.0.1:9/secret", "title": "Inside", "content": "Not for agents."},
    ]
}
CALLS = (
    {"name": "search", "arguments": {"query": "tall towers"}},
    {"name": "open", "arguments": {"url": "2"}},
    {"name": "search", "arguments": {"query": "東京"}},
    {"name": "answer", "arguments": {"text": "Tokyo"}},
)


def episode(**arguments):
    env = gym.make("seekgym/Web-v0", site="live", **arguments)
    found = [env.reset(seed=3)[0]]
    for call in CALLS:
        observation, reward, terminated, truncated, info = env.step(call)
        found.append((observation, reward, terminated, truncated, info["page_error"]))
    return found


def test_what_was_recorded_is_played_again_byte_for_byte(tmp_path):
    with web_server({"/search": json.dumps(RESULTS)}) as server:
        engine = f"searxng:{server.url}"
        recorded = episode(search=engine, record=str(tmp_path))
    replayed = episode(search=engine, replay=str(tmp_path))
    assert replayed == recorded
    assert "A tower" in recorded[1][0]
    assert recorded[2][4] == "blocked_address"
    assert recorded[4][2] is True


def test_a_miss_in_a_replay_is_told_and_no_crash(tmp_path):
    with web_server({"/search": json.dumps(RESULTS)}) as server:
        engine = f"searxng:{server.url}"
        episode(search=engine, record=str(tmp_path))
    env = gym.make("seekgym/Web-v0", site="live", search=engine, replay=str(tmp_path))
    env.reset(seed=3)
    call = {"name": "search", "arguments": {"query": "never asked"}}
    observation, _, _, truncated, info = env.step(call)
    assert info["page_error"] == "not_recorded"
    assert not truncated
    assert "recorded" in observation


def test_its_arguments_are_for_the_live_web():
    with pytest.raises(ConfigurationError, match=r"record='x' is for site='live'"):
        gym.make("seekgym/Web-v0", site="phantom:people=50", record="x")
