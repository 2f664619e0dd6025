"""Faults that users of such systems reported, as far as rollouts go; see ``test_reported``."""

import json

import gymnasium as gym
import pytest
from hamlets import hamlets
from wandering import WanderingPolicy, lines

from seekgym.agents.rollouts import (
    EpisodePlan,
    GroupVariance,
    Reply,
    RunningEpisode,
    WellFormed,
    generate,
    read_trajectories,
    replay,
    write_trajectories,
)
from seekgym.agents.rollouts.pool import EnvironmentPool
from seekgym.envs.wrappers import TextProtocol

PROTOCOLS = (None, "search-r1", "hermes", "react")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_071_sixteen_episodes_on_one_retriever_know_nothing_of_each_other(protocol):
    pool = EnvironmentPool("seekgym/QA-v0", {"rewards": "search-r1-v0.3"}, protocol=protocol)
    envs = [pool.take() for _ in range(16)]
    assert len({id(env.unwrapped) for env in envs}) == 16
    assert len({id(env.unwrapped.retriever) for env in envs}) == 1
    assert len({id(env.unwrapped.corpus) for env in envs}) == 1
    plans = [EpisodePlan(n, str(n), str(n), n, (n,)) for n in range(16)]
    together = _interleaved(WanderingPolicy(protocol), envs, plans)
    for plan, trajectory in zip(plans, together, strict=True):
        fresh = EnvironmentPool("seekgym/QA-v0", {"rewards": "search-r1-v0.3"}, protocol=protocol)
        [alone] = _interleaved(WanderingPolicy(protocol), [fresh.take()], [plan])
        assert alone.to_json() == trajectory.to_json()
        assert replay(trajectory) == []
        corpus = envs[0].unwrapped.corpus
        for turn in trajectory.turns:
            for document in turn.documents:
                assert f"[{document}]" in turn.observation
                assert corpus[document].title[:20] in turn.observation
        assert trajectory.outcome["turn"] == len(trajectory.turns)


def _interleaved(policy, envs, plans):
    """Play all of them at once, a turn each in turns."""
    episodes = (
        RunningEpisode(env, plan, agent=policy.name) for env, plan in zip(envs, plans, strict=True)
    )
    policy.at_once = len(plans)
    return sorted(policy.play(episodes), key=lambda trajectory: int(trajectory.id))


ODD = ["\udcb0", "\ud83c", "a\ud800b", "\udfff" * 40, "<search>\ud83c</search>", "\ud83c\udf89"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("odd", ODD)
def test_073_lone_surrogates_survive_log_and_file_and_are_scored(protocol, odd, tmp_path):
    env = gym.make("seekgym/QA-v0")
    env = env if protocol is None else TextProtocol(env, protocol)
    episode = RunningEpisode(env, EpisodePlan(0, odd, odd, 0, (0,)), agent=odd)
    written = {
        None: {"name": "answer", "arguments": {"text": odd}},
        "search-r1": f"<answer>{odd}</answer>",
        "hermes": f'<tool_call>{{"name": "answer", "arguments": {{"text": "{odd}"}}}}</tool_call>',
        "react": f"Action: answer[{odd}]",
    }
    query = written[protocol]
    query = query if isinstance(query, str) else {"name": "search", "arguments": {"query": odd}}
    episode.send(Reply(query.replace("answer", "search") if isinstance(query, str) else query))
    if not episode.is_over:
        episode.send(Reply(written[protocol]))
    while not episode.is_over:
        episode.send(Reply(odd))
    trajectory = episode.finish(usage={odd: 1.0})
    write_trajectories([trajectory], tmp_path / "t.jsonl")
    [again] = read_trajectories(tmp_path / "t.jsonl")
    assert again.to_json() == trajectory.to_json()
    (tmp_path / "t.jsonl").read_text(encoding="utf-8").encode("utf-8")
    assert again.outcome["exact_match"] in (0.0, 1.0)
    assert replay(again) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_073_odd_texts_of_a_policy_lose_no_episode(protocol, tmp_path):
    policy = WanderingPolicy(protocol, odd=0.5)
    played = generate(policy, hamlets(), episodes=24, group_size=4)
    write_trajectories(played, tmp_path / "t.jsonl")
    assert lines(read_trajectories(tmp_path / "t.jsonl")) == lines(played)
    assert all(each.outcome["exact_match"] is not None for each in played)
    list(GroupVariance()(played))


CUT = {
    None: [{"name": "answer", "arguments": {"text": "Bet"}}, {}, "who was the"],
    "search-r1": ["<search>who was the", "<answer>Bet</answer>", "<answer>Bet", "", "</think>"],
    "hermes": [
        '<tool_call>{"name": "answer", "arguments": {"text": "Bet"}}</tool_call>',
        '<tool_call>{"name": "answer", "argu',
        "",
    ],
    "react": ["Action: answer[Bet]", "Action: answer[Bet", "Thought: who was the"],
}


@pytest.mark.parametrize(
    ("protocol", "action"), [(name, each) for name, texts in CUT.items() for each in texts]
)
def test_076_a_cut_off_reply_is_an_invalid_move_and_no_answer(protocol, action, tmp_path):
    env = hamlets() if protocol is None else TextProtocol(hamlets(), protocol)
    plan = EpisodePlan(0, "0", "0", 0, (0,), {"task": "t0"})
    episode = RunningEpisode(env, plan, agent="cut")
    observation = episode.send(Reply(action, finish="length", span=(0, 1, 4)))
    assert "cut off" in observation
    [turn] = episode.turns
    assert (turn.error, turn.finish, turn.reward, turn.documents) == ("cut_off", "length", 0.0, ())
    assert not episode.is_over
    trajectory = episode.finish()
    assert trajectory.outcome["invalid_calls"] == 1
    assert trajectory.outcome["valid_calls"] == 0
    assert not WellFormed().keeps(trajectory)
    record = json.loads(trajectory.to_json())["turns"][0]
    assert (record["finish"], record["error"]) == ("length", "cut_off")
    write_trajectories([trajectory], tmp_path / "t.jsonl")
    [again] = read_trajectories(tmp_path / "t.jsonl")
    assert again.turns[0].finish == "length"
    assert [each for each in replay(again, env) if "did not end" not in each] == []


def test_076_cut_off_replies_of_a_policy_are_all_flagged():
    for protocol in PROTOCOLS:
        played = generate(WanderingPolicy(protocol, cuts=0.4), hamlets(), episodes=24)
        turns = [turn for each in played for turn in each.turns]
        assert {turn.error for turn in turns if turn.finish == "length"} == {"cut_off"}
        assert all(turn.finish == "length" for turn in turns if turn.error == "cut_off")
        for each in played:
            flagged = sum(turn.finish == "length" for turn in each.turns)
            assert each.outcome["invalid_calls"] >= flagged
