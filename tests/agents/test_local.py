"""A local language model plays: tokens, log-probabilities, stops, batches, segments."""

import json
from collections import Counter
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_models import ANSWER, SEARCH, family, policy, taught, tokenizer

from seekgym.agents.llm.decoder import Decoder
from seekgym.agents.llm.local import LocalPolicy
from seekgym.agents.llm.scoring import check_log_probs, score_segments
from seekgym.agents.llm.tiny import tiny_model
from seekgym.agents.rollouts import Segment, generate, read_trajectories, replay
from seekgym.agents.rollouts import write_trajectories as write
from seekgym.corpora import ConfigurationError
from seekgym.corpora.errors import TokenError
from seekgym.envs.protocols import PROTOCOLS

SHORT = {"max_turns": 3, "max_observation_chars": 1_000, "k": 2}


def rollout(made, *, episodes=8, env="seekgym/Phantom-50-v0", seed=0, **arguments):
    return generate(made, env, episodes=episodes, seed=seed, arguments={**SHORT, **arguments})


def sampled(trajectories):
    return [
        [i for s in t.segments for i, m in zip(s.ids, s.mask, strict=True) if m]
        for t in trajectories
    ]


@pytest.mark.parametrize("batch_size", [1, 32])
@pytest.mark.parametrize("is_constrained", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_recomputed_log_probabilities_are_those_of_sampling(protocol, is_constrained, batch_size):
    made = policy(
        protocol=protocol,
        is_constrained=is_constrained,
        batch_size=batch_size,
        max_new_tokens=12,
        max_context=2048,
    )
    played = rollout(made, episodes=17)  # 12 cases: 204 episodes
    segments = [segment for trajectory in played for segment in trajectory.segments]
    assert len({len(segment.ids) for segment in segments}) > 5  # ragged
    for padding in ("left", "right"):
        scored = score_segments(made.model, segments, padding=padding)
        for segment, found in zip(segments, scored, strict=True):
            np.testing.assert_allclose(found, segment.log_probs, atol=1e-4, rtol=0)
            assert all(p < 0 for p, m in zip(found, segment.mask, strict=True) if m)


@pytest.mark.parametrize("name", ["qwen2", "gpt2", "gpt-neox", "mistral", "falcon"])
def test_other_families_keep_their_log_probabilities(name):
    made = policy(family(name), batch_size=4, temperature=0.7)
    played = rollout(made, episodes=6)
    for trajectory in played:
        assert check_log_probs(made.model, trajectory, temperature=0.7) < 1e-4
    assert Decoder(made.model, 4).is_batched == (name not in ("mistral", "falcon"))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_batch_samples_what_single_episodes_do(temperature):
    for made, options in ((family("llama"), {}), (taught(), {"max_new_tokens": 40})):
        found = [
            rollout(policy(made, batch_size=size, temperature=temperature, **options), episodes=12)
            for size in (1, 5, 12)
        ]
        assert sampled(found[0]) == sampled(found[1]) == sampled(found[2])
        assert [t.turns for t in found[0]] == [t.turns for t in found[2]]


def test_groups_begin_alike_and_differ_in_their_draws():
    made = policy()
    played = generate(made, "seekgym/Phantom-50-v0", episodes=12, group_size=4, arguments=SHORT)
    assert [t.group for t in played] == ["0"] * 4 + ["1"] * 4 + ["2"] * 4
    for group in range(3):
        members = played[4 * group : 4 * group + 4]
        assert len({(t.task_id, t.question, t.seed) for t in members}) == 1
        assert len({tuple(ids) for ids in sampled(members)}) == 4
    again = generate(made, "seekgym/Phantom-50-v0", episodes=12, group_size=4, arguments=SHORT)
    assert sampled(again) == sampled(played)


@pytest.mark.parametrize("has_template", [False, True])
def test_a_taught_model_stops_at_the_tags_to_the_token(has_template):
    made = policy(
        taught(has_template), has_template=has_template, temperature=0.2, max_new_tokens=64
    )
    played = rollout(made, episodes=16)
    texts = Counter(turn.action for t in played for turn in t.turns if isinstance(turn.action, str))
    assert texts[SEARCH.rstrip()] > 8
    assert texts[ANSWER.rstrip()] > 8  # cut after the tag, though the model goes on
    for trajectory in played:
        for turn in trajectory.turns:
            segment, start, end = turn.span
            ids = trajectory.segments[segment].ids[start:end]
            text = made.layout.text(list(ids))
            assert text.startswith(str(turn.action)) or turn.finish == "length"
            if turn.finish == "stop" and "</" in text:
                shorter = made.layout.text(list(ids[:-1]))
                assert not any(stop in shorter for stop in PROTOCOLS["search-r1"].stop)


def test_a_reply_that_is_cut_is_no_answer():
    """Report 76: a reply cut by the token limit, whatever it holds."""
    played = rollout(policy(taught(), temperature=0.2, max_new_tokens=8), episodes=4)
    turns = [turn for trajectory in played for turn in trajectory.turns]
    cut = [turn for turn in turns if turn.finish == "length"]
    assert cut
    for turn in cut:
        assert turn.action["is_cut"] is True
        assert turn.error == "cut_off"
        assert turn.documents == ()
        assert "cut off" in turn.observation
    for trajectory in played:
        assert replay(trajectory) == []


class Recorded:
    """A sampler that keeps what it drew, by generator."""

    def __init__(self, sampler):
        self._sampler = sampler
        self.scale = sampler.scale
        self.drawn = {}

    def draw(self, log_probs, generator, is_allowed=None):
        token = self._sampler.draw(log_probs, generator, is_allowed)
        self.drawn.setdefault(id(generator), (generator, []))[1].append(token)
        return token


ENVIRONMENTS = st.tuples(
    st.sampled_from(["seekgym/Phantom-50-v0", "seekgym/QA-v0"]),
    st.sampled_from(sorted(PROTOCOLS)),
    st.booleans(),
    st.sampled_from(["drop-oldest", "keep-last", "summarize"]),
    st.integers(0, 1000),
)


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(ENVIRONMENTS)
def test_the_mask_is_exactly_what_was_sampled(case):
    env, protocol, is_constrained, compaction, seed = case
    made = policy(
        protocol=protocol,
        is_constrained=is_constrained,
        compaction=compaction,
        max_context=1700,
        max_new_tokens=20,
    )
    made.sampler = Recorded(made.sampler)
    env_arguments = {"max_turns": 5, "max_observation_chars": 2_000, "k": 2}
    played = generate(made, env, episodes=5, seed=seed, arguments=env_arguments)
    drawn = sorted(tokens for _, tokens in made.sampler.drawn.values())
    assert sorted(sampled(played)) == drawn
    for trajectory in played:
        for segment in trajectory.segments:
            assert len(segment.ids) == len(segment.mask) == len(segment.log_probs)
            assert len(segment.ids) <= 1700
        check_log_probs(made.model, trajectory)
        assert_nothing_is_given_away(made, trajectory, gym.make(env, **env_arguments))


def assert_nothing_is_given_away(made, trajectory, env):
    """The answer stands among given tokens only if question or a shown document states it."""
    corpus = env.unwrapped.corpus
    for gold in trajectory.outcome["gold_answers"]:
        if gold.lower() in trajectory.question.lower() or len(gold) < 5:
            continue
        shown = ""
        for turn in trajectory.turns:
            number, start, _ = turn.span
            segment = trajectory.segments[number]
            given_before = [
                i for i, m in zip(segment.ids[:start], segment.mask[:start], strict=True) if not m
            ]
            text = made.layout.text(given_before)
            replies = " ".join(str(t.action) for t in trajectory.turns)
            assert gold not in text or gold in shown or gold in replies
            shown += " ".join(f"{corpus[d].title} {corpus[d].text}" for d in turn.documents)


def test_segments_survive_their_file(tmp_path):
    played = rollout(policy(compaction="keep-last", max_context=700), episodes=4)
    write(played, tmp_path / "t.jsonl")
    read = list(read_trajectories(tmp_path / "t.jsonl"))
    assert [t.to_json() for t in read] == [t.to_json() for t in played]
    assert [(t.segments, t.group, t.id) for t in read] == [
        (t.segments, t.group, t.id) for t in played
    ]
    line = json.loads(played[0].to_json())
    line["segments"][0]["mask"] = line["segments"][0]["mask"][1:]
    (tmp_path / "wrong.jsonl").write_text(json.dumps(line))
    with pytest.raises(ValueError, match=r"wrong.jsonl, line 1.*segments"):
        list(read_trajectories(tmp_path / "wrong.jsonl"))


def test_a_changed_token_or_model_is_found_out():
    made = policy()
    trajectory = rollout(made, episodes=1)[0]
    (first, *rest) = trajectory.segments
    index = first.mask.index(1)
    ids = (*first.ids[:index], (first.ids[index] + 1) % 600, *first.ids[index + 1 :])
    wrong = replace(trajectory, segments=(Segment(ids, first.mask, first.log_probs), *rest))
    with pytest.raises(TokenError, match=r"segment 0, token \d+: the recorded log-probability"):
        check_log_probs(made.model, wrong)
    other = tiny_model(width=64, layers=2, tokenizer=tokenizer(), seed=5)[0]
    with pytest.raises(TokenError, match="recomputed"):
        check_log_probs(other, trajectory)


def test_the_policy_checks_itself_while_it_plays(monkeypatch):
    model = tiny_model(width=64, layers=2, tokenizer=tokenizer())[0]
    made = policy(model)
    rollout(made, episodes=2)
    head, calls = model.lm_head.forward, iter(range(10**6))

    def drifting(hidden):  # weights that change while an episode is played
        return head(hidden) * (1 + 0.01 * next(calls))

    monkeypatch.setattr(model.lm_head, "forward", drifting)
    with pytest.raises(TokenError, match="recomputed"):
        rollout(made, episodes=2)


def test_no_token_is_read_twice(monkeypatch):
    made = policy(batch_size=4, compaction="drop-oldest", max_context=2048)
    read = []
    original = Decoder._read

    def counted(self, rows, feeds):
        read.extend(len(feed) for feed in feeds)
        return original(self, rows, feeds)

    monkeypatch.setattr(Decoder, "_read", counted)
    played = rollout(made, episodes=8)
    tokens = sum(len(segment.ids) for t in played for segment in t.segments)
    assert len(played[0].segments) == 1
    assert sum(read) < tokens  # less than all: what episodes share is copied


def test_a_long_episode_does_not_idle_the_batch(monkeypatch):
    made = policy(batch_size=4, max_new_tokens=8)
    sizes = []
    original = LocalPolicy._advance

    def counted(self, decoder, active):
        sizes.append(len(active))
        return original(self, decoder, active)

    monkeypatch.setattr(LocalPolicy, "_advance", counted)
    rollout(made, episodes=13)
    full = max(i for i, size in enumerate(sizes) if size == 4)
    assert set(sizes[:full]) == {4}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protocol": "hermess"}, "did you mean 'hermes'"),
        ({"max_context": 90}, "max_context=90 is too little: instructions and question take"),
        ({"max_context": 9_000}, "max_context=9000 is more than the model's 4096 positions"),
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number of at least 1"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"temperature": -1.0}, "temperature must be at least 0"),
        ({"temperature": float("nan")}, "temperature must be at least 0"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"top_k": -1}, "top_k must be at least 0"),
        ({"compaction": "drop"}, "unknown compaction 'drop'"),
    ],
)
def test_a_wrong_argument_is_named(options, words):
    with pytest.raises(ConfigurationError, match=words):
        rollout(policy(**options), episodes=1)


def test_a_model_that_is_not_there_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for name, words in ((str(tmp_path), "cannot be loaded"), ("/no/such/folder", "no such file")):
        with pytest.raises(ConfigurationError, match=words):
            LocalPolicy.from_pretrained(name)
