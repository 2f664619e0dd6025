import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hamlets import hamlets
from hypothesis import given, settings
from hypothesis import strategies as st
from wandering import WanderingPolicy, lines

from seekgym.agents.rollouts import (
    Draw,
    GroupVariance,
    ReplayBuffer,
    Source,
    Store,
    generate,
    groups_of,
    read_trajectories,
)
from seekgym.corpora import ConfigurationError


def generator(seed=0):
    return np.random.default_rng(np.random.SeedSequence([seed]))


@pytest.fixture(scope="module")
def rollout():
    """Eight groups of three, rewarded differently."""
    return generate(WanderingPolicy(), hamlets(), episodes=24, group_size=3, seed=4)


def paid(trajectory, *rewards):
    """Return a group with these rewards, each right if it is 1."""
    turn = trajectory.turns[-1]
    return [
        replace(
            trajectory,
            turns=(*trajectory.turns[:-1], replace(turn, reward=reward)),
            outcome={**trajectory.outcome, "exact_match": float(reward == 1.0)},
        )
        for reward in rewards
    ]


def flat(buffer):
    return lines(each for entry in buffer.entries for each in entry)


def test_the_latest_are_kept(rollout):
    buffer = ReplayBuffer(3)
    buffer.add(rollout)
    assert len(buffer) == 3
    assert flat(buffer) == lines(rollout[-9:])
    single = ReplayBuffer(5, unit="trajectory")
    single.add(rollout)
    assert flat(single) == lines(rollout[-5:])


def test_the_best_paid_and_the_middling_are_kept(rollout):
    entries = {
        name: paid(replace(rollout[0], group=name), *rewards)
        for name, rewards in {"a": (1, 1), "b": (0, 0), "c": (1, 0), "d": (0.8, 0.8)}.items()
    }
    for order, kept in (("reward", ["a", "d"]), ("difficulty", ["c", "d"])):
        buffer = ReplayBuffer(2, order=order)
        for entry in entries.values():
            buffer.add(entry)
        assert [entry[0].group for entry in buffer.entries] == kept


def test_draws_are_seeded_whole_and_without_putting_back(rollout):
    buffer = ReplayBuffer(8)
    buffer.add(rollout)
    drawn = buffer.sample(5, generator(1))
    assert lines(drawn) == lines(buffer.sample(5, generator(1)))
    assert lines(drawn) != lines(buffer.sample(5, generator(2)))
    assert len({each.id for each in drawn}) == len(drawn) == 15
    assert [len(group) for group in groups_of(drawn)] == [3] * 5
    assert len(buffer.sample(99, generator())) == 24
    assert buffer.sample(0, generator()) == ReplayBuffer(1).sample(3, generator()) == []


def test_better_entries_are_drawn_more_often(rollout):
    buffer = ReplayBuffer(4, unit="trajectory", priority=2.0)
    buffer.add(rollout[:4])
    draw = generator()
    often = Counter(buffer.sample(1, draw)[0].id for _ in range(400))
    assert [name for name, _ in often.most_common()] == [each.id for each in rollout[3::-1]]
    even = ReplayBuffer(4, unit="trajectory")
    even.add(rollout[:4])
    often = Counter(even.sample(1, draw)[0].id for _ in range(400))
    assert min(often.values()) > 60


@pytest.mark.parametrize("unit", ["group", "trajectory"])
def test_it_is_read_back_from_its_file(rollout, tmp_path, unit):
    path = tmp_path / "buffer.jsonl"
    buffer = ReplayBuffer(5, path=path, unit=unit)
    buffer.add(rollout)
    again = ReplayBuffer(5, path=path, unit=unit)
    assert flat(again) == flat(buffer)
    assert lines(again.sample(3, generator())) == lines(buffer.sample(3, generator()))
    again.add(rollout[:3])
    assert flat(ReplayBuffer(5, path=path, unit=unit)) == flat(again)
    assert len(list(read_trajectories(path))) <= 2 * 5 * 3


def test_the_file_is_bounded(rollout, tmp_path):
    path = tmp_path / "buffer.jsonl"
    buffer = ReplayBuffer(2, path=path)
    for _ in range(5):
        buffer.add(rollout)
    assert len(list(read_trajectories(path))) <= (2 * 2 + 1) * 3
    assert flat(ReplayBuffer(2, path=path)) == flat(buffer)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1))
def test_a_file_cut_anywhere_holds_every_whole_entry(tmp_path_factory, rollout, share):
    folder = tmp_path_factory.mktemp("cut")
    ReplayBuffer(9, path=folder / "whole").add(rollout)
    content = (folder / "whole").read_bytes()
    ends = [0]
    while (end := content.find(b"\n\n", ends[-1])) >= 0:
        ends.append(end + 2)
    size = round(share * len(content))
    (folder / "cut").write_bytes(content[:size])
    again = ReplayBuffer(9, path=folder / "cut")
    assert len(again) == sum(end <= size for end in ends[1:])
    again.add(rollout[-3:])
    assert flat(ReplayBuffer(9, path=folder / "cut")) == flat(again)
    torn = folder / "cut.torn"
    kept = torn.read_bytes()[:-1] if torn.exists() else b""
    assert kept == content[max(end for end in ends if end <= size) : size]


WRITER = """
import sys
sys.path.append({kit!r})
from hamlets import hamlets
from wandering import WanderingPolicy
from seekgym.agents.rollouts import ReplayBuffer, generate
rollout = generate(WanderingPolicy(), hamlets(), episodes=24, group_size=3, seed=4)
buffer = ReplayBuffer(10**6, path={path!r})
while True:
    buffer.add(rollout)
"""


def test_a_kill_loses_nothing_that_was_whole(rollout, tmp_path):
    path = tmp_path / "buffer.jsonl"
    kit = str(Path(__file__).parent.parent / "kit")
    writer = subprocess.Popen([sys.executable, "-c", WRITER.format(kit=kit, path=str(path))])
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < 300_000:
        assert time.monotonic() < deadline
        assert writer.poll() is None
    os.kill(writer.pid, signal.SIGKILL)
    assert writer.wait(10) == -signal.SIGKILL
    whole = path.read_bytes().count(b"\n\n")
    buffer = ReplayBuffer(10**6, path=path)
    assert len(buffer) == whole > 8
    cycle = list(map(list, groups_of(rollout)))
    for number, entry in enumerate(buffer.entries):
        assert lines(entry) == lines(cycle[number % 8])


def test_store_and_draw_are_stages(rollout):
    buffer = ReplayBuffer(20)
    old = generate(WanderingPolicy(), hamlets(), episodes=12, group_size=3, seed=9)
    buffer.add(old)
    pipeline = Source(lambda: rollout) | Store(buffer) | GroupVariance() | Draw(buffer, 2, seed=1)
    kept, _ = pipeline.run()
    new = list(GroupVariance()(rollout))
    assert lines(kept[: len(new)]) == lines(new)
    assert len(buffer) == 12
    drawn = kept[len(new) :]
    assert len(drawn) == 6
    assert not {each.to_json() for each in drawn} & set(lines(new))
    single = ReplayBuffer(99, unit="trajectory")
    assert lines(Store(single)(rollout)) == lines(rollout)
    assert lines(Draw(single, 99)(rollout)) == lines(rollout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"capacity": 0}, "capacity"), ({"order": "newest"}, "order"), ({"unit": "turn"}, "unit")],
)
def test_arguments_out_of_range_are_refused(arguments, words):
    with pytest.raises(ConfigurationError, match=words):
        ReplayBuffer(**({"capacity": 1} | arguments))


def test_a_file_of_something_else_is_set_aside_and_not_lost(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text(json.dumps({"a": 1}) + "\n")
    assert len(ReplayBuffer(2, path=path)) == 0
    assert json.loads((tmp_path / "notes.jsonl.torn").read_text()) == {"a": 1}
