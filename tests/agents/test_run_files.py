"""Rollouts on disk: a killed run goes on, loses none and doubles none."""

import functools
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.agents import IterativeAgent, RandomAgent
from seekgym.agents.policy import AgentPolicy, Policy
from seekgym.agents.rollouts import generate, read_trajectories
from seekgym.agents.rollouts.store import RunFile
from seekgym.corpora import ConfigurationError, CorpusError

ENV = "seekgym/QA-v0"
SECONDS_TO_DIE = 60
CHILD = """
import sys
from seekgym.agents import IterativeAgent
from seekgym.agents.policy import AgentPolicy
from seekgym.agents.rollouts import generate

path, episodes = sys.argv[1], int(sys.argv[2])
generate(AgentPolicy(IterativeAgent), "seekgym/QA-v0", episodes=episodes, seed=3, path=path)
"""


@pytest.fixture(scope="module")
def env():
    return gym.make(ENV)


@functools.cache
def undisturbed():
    return generate(AgentPolicy(IterativeAgent), ENV, episodes=8, group_size=2)


@pytest.fixture
def whole():
    return undisturbed()


def lines(trajectories):
    return [trajectory.to_json() for trajectory in trajectories]


class Counted(AgentPolicy):
    """Counts the episodes that it plays, and may stop or lose some."""

    def __init__(self, agent=IterativeAgent, *, stops_after=None, loses=()):
        super().__init__(agent)
        self.stops_after = stops_after
        self.loses = set(loses)
        self.played = []

    def play(self, episodes):
        def kept():
            for episode in episodes:
                if episode.plan.id in self.loses:
                    self.lost.append(episode.finish(failure="the server is gone"))
                else:
                    yield episode

        self.lost = []
        for trajectory in super().play(kept()):
            yield from self.lost
            self.lost.clear()
            self.played.append(trajectory.id)
            yield trajectory
            if len(self.played) == self.stops_after:
                raise KeyboardInterrupt
        yield from self.lost


def test_a_run_is_on_disk_as_it_goes_and_can_be_read(env, whole, tmp_path):
    path = tmp_path / "deep" / "run.jsonl"
    counts = []

    def count(trajectory):
        counts.append(len(list(read_trajectories(path))))

    played = generate(Counted(), env, episodes=8, group_size=2, path=path, on_finished=count)
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8]
    assert lines(played) == lines(whole) == lines(read_trajectories(path))


def test_a_stopped_run_goes_on_where_it_was(env, whole, tmp_path):
    path = tmp_path / "run.jsonl"
    first = Counted(stops_after=3)
    with pytest.raises(KeyboardInterrupt):
        generate(first, env, episodes=8, group_size=2, path=path)
    second, told = Counted(), []
    played = generate(
        second,
        env,
        episodes=8,
        group_size=2,
        path=path,
        on_finished=lambda trajectory: told.append(trajectory.id),
    )
    assert second.played == ["1-1", "2-0", "2-1", "3-0", "3-1"]
    assert told == [t.id for t in whole]
    assert lines(played) == lines(whole)
    third = Counted()
    assert lines(generate(third, env, episodes=8, group_size=2, path=path)) == lines(whole)
    assert third.played == []


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0, 1))
def test_a_file_cut_anywhere_goes_on(env, tmp_path_factory, share):
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    generate(Counted(), env, episodes=8, group_size=2, path=path)
    content = path.read_bytes()
    cut = content[: int(share * len(content))]
    path.write_bytes(cut)
    policy = Counted()
    played = generate(policy, env, episodes=8, group_size=2, path=path)
    assert lines(played) == lines(undisturbed())
    assert len(policy.played) == 8 - cut.count(b"\n")
    assert path.read_bytes().count(b"\n") == 8


def test_episodes_that_were_lost_are_played_again(env, whole, tmp_path):
    path = tmp_path / "run.jsonl"
    played = generate(Counted(loses=["0-1", "3-1"]), env, episodes=8, group_size=2, path=path)
    assert [t.id for t in played if t.outcome["valid"] is False] == ["0-1", "3-1"]
    again = Counted()
    assert lines(generate(again, env, episodes=8, group_size=2, path=path)) == lines(whole)
    assert again.played == ["0-1", "3-1"]
    assert len(list(read_trajectories(path))) == 8


def test_a_run_can_grow(env, tmp_path):
    path = tmp_path / "run.jsonl"
    generate(Counted(), env, episodes=3, path=path)
    policy = Counted()
    grown = generate(policy, env, episodes=5, path=path)
    assert policy.played == ["3-0", "4-0"]
    assert lines(grown) == lines(generate(Counted(), env, episodes=5))
    assert [t.id for t in generate(Counted(), env, episodes=2, path=path)] == ["0-0", "1-0"]


class Other(AgentPolicy):
    @property
    def identity(self):
        return super().identity | {"temperature": 0.5}


@pytest.mark.parametrize(
    ("policy", "environment", "changes", "words"),
    [
        (AgentPolicy(IterativeAgent), ENV, {"seed": 1}, "seed was 0, is 1"),
        (AgentPolicy(IterativeAgent), ENV, {"group_size": 1}, "group_size was 2, is 1"),
        (AgentPolicy(IterativeAgent), ENV, {"options": {"hops": 2}}, "options hops was None"),
        (AgentPolicy(IterativeAgent), ENV, {"arguments": {"max_turns": 3}}, "env_hash was"),
        (AgentPolicy(IterativeAgent), ENV, {"arguments": {"max_episode_steps": 3}}, "_steps"),
        (AgentPolicy(IterativeAgent), "seekgym/Phantom-50-v0", {}, "environment was '.*QA-v0'"),
        (AgentPolicy(RandomAgent), ENV, {}, "policy name was .*iterative.*, is .*random"),
        (Other(IterativeAgent), ENV, {}, "policy temperature was None, is 0.5"),
    ],
)
def test_the_file_of_another_run_is_refused_and_stays_as_it_is(
    env, tmp_path, policy, environment, changes, words
):
    path = tmp_path / "run.jsonl"
    generate(AgentPolicy(IterativeAgent), ENV, episodes=2, group_size=2, path=path)
    content = path.read_bytes()
    with pytest.raises(ConfigurationError, match=f"is of another run.*{words}"):
        generate(policy, environment, **{"episodes": 4, "group_size": 2, "path": path, **changes})
    assert path.read_bytes() == content


def test_a_file_that_is_no_run_is_refused_and_stays_as_it_is(env, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("my notes\n")
    with pytest.raises(ConfigurationError, match="does not say which run it is"):
        generate(Counted(), env, episodes=2, path=path)
    assert path.read_text() == "my notes\n"


@pytest.mark.parametrize("line", [b"{}\n", b"[1]\n", b"nonsense\n", b'{"id": "x", "outcome": 3}\n'])
def test_a_broken_line_in_the_middle_is_an_error_and_loses_nothing(env, tmp_path, line):
    path = tmp_path / "run.jsonl"
    generate(Counted(), env, episodes=2, path=path)
    content = line + path.read_bytes()
    path.write_bytes(content)
    with pytest.raises(CorpusError, match="a line is no trajectory"):
        generate(Counted(), env, episodes=2, path=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", [".", "run.jsonl.gz"])
def test_a_path_that_cannot_be_a_run_is_refused(env, tmp_path, name):
    with pytest.raises(ConfigurationError, match="path must name a plain file"):
        generate(Counted(), env, episodes=1, path=tmp_path / name)


def test_two_processes_never_write_one_run(tmp_path):
    with (
        RunFile.open(tmp_path / "run.jsonl", {"seed": 0}),
        pytest.raises(ConfigurationError, match="another process writes this run"),
        RunFile.open(tmp_path / "run.jsonl", {"seed": 0}),
    ):
        pass
    with RunFile.open(tmp_path / "run.jsonl", {"seed": 0}):
        pass


def test_a_short_episode_waits_in_no_buffer(whole, tmp_path):
    path = tmp_path / "run.jsonl"
    with RunFile.open(path, {"seed": 0}) as run:
        run.write(replace(whole[0], turns=()))
        assert len(path.read_bytes()) < io.DEFAULT_BUFFER_SIZE
        assert len(list(read_trajectories(path))) == 1


def test_a_policy_says_who_it_is():
    assert AgentPolicy(IterativeAgent).identity == {"name": "iterative", "protocol": None}
    assert isinstance(Policy.identity, property)


def test_a_run_that_is_killed_again_and_again_comes_to_its_end(tmp_path):
    path = tmp_path / "run.jsonl"
    kept = 0
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-P", "-c", CHILD, str(path), "2000"])
        wait_for_lines(path, kept + 20)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        kept = path.read_bytes().count(b"\n")
    assert 60 <= kept < 2000
    with open(path, "ab") as file:
        file.write(b'{"environment": "seekgym/QA')  # as if it was killed in the middle of a line
    episodes = kept + 10
    done = subprocess.run([sys.executable, "-P", "-c", CHILD, str(path), str(episodes)])
    assert done.returncode == 0
    whole = generate(AgentPolicy(IterativeAgent), ENV, episodes=episodes, seed=3)
    assert lines(read_trajectories(path)) == lines(whole)
    assert json.loads((tmp_path / "run.jsonl.run").read_text())["seed"] == 3


def wait_for_lines(path, count):
    deadline = time.monotonic() + SECONDS_TO_DIE
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, "the run did not begin"
        time.sleep(0.01)
