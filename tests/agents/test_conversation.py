"""What a chat model and an environment say to each other, without a wire."""

import json
import re

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="needs the extras llm and serve")

from loopback import ENV, call, small_env

from seekgym.agents import IterativeAgent
from seekgym.agents.llm.conversation import ChatReply, messages_of, reply_of
from seekgym.agents.rollouts import EpisodePlan, Reply, RunningEpisode, Start, Trajectory, play
from seekgym.corpora.documents import Record
from seekgym.envs.wrappers import TextProtocol


@pytest.mark.parametrize(
    ("text", "stop", "action"),
    [
        ("<answer>x", None, "<answer>x</answer>"),
        ("<search>a <answer>b", "</answer>", "<search>a <answer>b</answer>"),
        ("I do not know", None, "I do not know"),
        ("I do not know", "</search>", "I do not know"),
        ("<search>a</search>", None, "<search>a</search>"),
    ],
)
def test_a_stop_string_is_put_back_only_where_it_makes_a_call(text, stop, action):
    protocol = TextProtocol(small_env(), "search-r1").protocol
    assert reply_of(ChatReply(text, stop=stop), protocol).action == action


CHAT_REPLIES = st.builds(
    ChatReply,
    text=st.text(max_size=20) | st.just("\ud83c"),
    calls=st.lists(
        st.builds(
            call,
            name=st.sampled_from(["search", "read", "answr", "", "a b"]) | st.text(max_size=5),
            arguments=st.sampled_from(['{"query": "a"}', "{", "[]", "", "3", '{"a": 1e999}'])
            | st.text(max_size=10),
            id=st.sampled_from(["", "a", "b"]),
        ),
        max_size=3,
    ).map(tuple),
    finish=st.sampled_from(["stop", "tool_calls", "length", "content_filter"]),
)


@settings(max_examples=60, deadline=None)
@given(replies=st.lists(CHAT_REPLIES, min_size=1, max_size=4))
def test_any_replies_make_messages_that_servers_take(replies):
    env = small_env(max_turns=8)
    episode = RunningEpisode(env, EpisodePlan(0, "0-0", "0", 0, (0, 1, 0)), agent="chat")
    for reply in replies:
        episode.send(reply_of(reply, None))
    messages = messages_of(episode)
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()
    assert sum(message["role"] == "assistant" for message in messages) == len(replies)
    waiting = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [made["id"] for made in message.get("tool_calls", ())]
        assert len(set(waiting)) == len(waiting)
        for made in message.get("tool_calls", ()):
            assert isinstance(json.loads(made["function"]["arguments"]), dict)
            assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", made["function"]["name"])
    assert waiting == []
    trajectory = episode.finish()
    read = Trajectory.from_record(Record("f", 1, json.loads(trajectory.to_json())))
    assert [turn.action for turn in read.turns] == [turn.action for turn in episode.turns]


def test_episodes_played_by_others_go_on_in_chat():
    env = gym.make(ENV)
    begun = play(env, IterativeAgent(env), seed=0)
    plan = EpisodePlan(0, "0-0", "0", 0, (0,), {"task": begun.task_id}, Start(begun, 1))
    messages = messages_of(RunningEpisode(env, plan, agent="chat"))
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[2]["tool_calls"][0]["id"] == messages[3]["tool_call_id"]


def test_073_a_turn_of_another_policy_can_hold_a_lone_surrogate():
    episode = RunningEpisode(small_env(), EpisodePlan(0, "0-0", "0", 0, (0, 1, 0)), agent="chat")
    episode.send(Reply("\ud83c"))
    assert messages_of(episode)[2] == {"role": "assistant", "content": "\ufffd"}
