import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from seekgym.corpora import ConfigurationError
from seekgym.envs import QAEnv, SearchVectorEnv

SEARCH = {"name": "search", "arguments": {"query": "Nolan"}}
ANSWER = {"name": "answer", "arguments": {"text": "yes"}}


def make(num_envs, mode=AutoresetMode.NEXT_STEP, **arguments):
    return gym.make_vec(
        "seekgym/QA-v0",
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=mode,
        **arguments,
    )


def test_64_trajectories_are_those_of_64_single_environments():
    vector = make(64)
    observations, infos = vector.reset(seed=5)
    singles = [gym.make("seekgym/QA-v0") for _ in range(64)]
    expected = [env.reset(seed=5 + i) for i, env in enumerate(singles)]
    assert observations == tuple(observation for observation, _ in expected)
    assert list(infos["task_id"]) == [info["task_id"] for _, info in expected]
    assert set(infos["env_hash"]) == {info["env_hash"] for _, info in expected}
    for turn in range(7):
        actions = [
            {"name": "search", "arguments": {"query": f"{observations[i]} {turn}"}}
            for i in range(64)
        ]
        step = vector.step(actions)
        expected = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert step[0] == tuple(observation for observation, *_ in expected)
        assert list(step[4]["documents"]) == [info["documents"] for *_, info in expected]


def test_one_step_asks_the_retriever_once():
    class Counting:
        name = "counting"
        calls = 0

        def search(self, queries, k):
            self.calls += 1
            self.queries = len(queries)
            return [[] for _ in queries]

        def __deepcopy__(self, memo):
            return self

    retriever = Counting()
    vector = SearchVectorEnv(QAEnv(retriever=retriever), 8)
    vector.reset(seed=0)
    vector.step([SEARCH] * 6 + [ANSWER] * 2)
    assert (retriever.calls, retriever.queries) == (1, 6)


def test_one_failing_query_does_not_fail_the_others():
    class Picky:
        name = "picky"

        def search(self, queries, k):
            if "bad" in queries:
                raise ConnectionError("down")
            return [[] for _ in queries]

    vector = SearchVectorEnv(QAEnv(retriever=Picky()), 3)
    vector.reset(seed=0)
    bad = {"name": "search", "arguments": {"query": "bad"}}
    *_, truncations, infos = vector.step([SEARCH, bad, SEARCH])
    assert list(truncations) == [False, True, False]
    assert list(infos["valid"]) == [True, False, True]


def test_next_step_shows_the_terminal_observation_first():
    vector = make(2, max_turns=3)
    vector.reset(seed=0)
    observations, rewards, terminations, _, infos = vector.step([ANSWER, SEARCH])
    assert "episode is over" in observations[0]
    assert list(terminations) == [True, False]
    assert list(infos["_exact_match"]) == [True, False]
    observations, rewards, terminations, _, infos = vector.step([ANSWER, SEARCH])
    assert observations[0].endswith("?") or "over" not in observations[0]
    assert (rewards[0], terminations[0], infos["turn"][0]) == (0.0, False, 0)
    assert infos["turn"][1] == 2


def test_same_step_keeps_the_terminal_observation_in_the_info():
    vector = make(2, AutoresetMode.SAME_STEP)
    vector.reset(seed=0)
    observations, _, terminations, _, infos = vector.step([ANSWER, SEARCH])
    assert list(terminations) == [True, False]
    assert "episode is over" in infos["final_obs"][0]
    assert infos["final_obs"][1] is None
    assert "over" not in observations[0]
    assert infos["final_info"]["exact_match"].shape == (2,)
    assert list(infos["turn"]) == [0, 1]


def test_disabled_resets_only_what_is_asked_for():
    vector = make(2, "Disabled")
    vector.reset(seed=0)
    vector.step([ANSWER, SEARCH])
    with pytest.raises(ResetNeeded):
        vector.step([SEARCH, SEARCH])
    vector = make(2, "Disabled")
    vector.reset(seed=0)
    before, *_ = vector.step([ANSWER, SEARCH])
    observations, infos = vector.reset(options={"reset_mask": np.array([True, False])})
    assert observations[1] == before[1]
    assert list(infos["_turn"]) == [True, False]
    assert list(vector.step([SEARCH, SEARCH])[4]["turn"]) == [1, 2]
    with pytest.raises(ConfigurationError, match="reset_mask"):
        vector.reset(options={"reset_mask": np.array([True])})


def test_options_reach_every_environment():
    task = "5ae40c465542996836b02c25"
    vector = make(3)
    assert set(vector.reset(options={"task": task})[1]["task_id"]) == {task}


def test_infos_are_packed_as_gymnasium_packs_them():
    vector, sync = make(3), SyncVectorEnv([lambda: gym.make("seekgym/QA-v0")] * 3)
    for each in (vector, sync):
        each.reset(seed=0)
    ours, theirs = (each.step((ANSWER, SEARCH, {"name": "x"}))[4] for each in (vector, sync))
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if not isinstance(value, dict):
            assert ours[key].dtype == value.dtype, key
            assert list(ours[key]) == list(value), key


def test_arguments_are_checked():
    with pytest.raises(ConfigurationError, match="num_envs"):
        make(0)
    with pytest.raises(ConfigurationError, match="known: Disabled, NextStep, SameStep"):
        make(1, "Never")
    vector = make(2)
    with pytest.raises(ConfigurationError, match="2 seeds"):
        vector.reset(seed=[1])
    vector.reset(seed=[1, None])
    with pytest.raises(ConfigurationError, match="2 actions"):
        vector.step([SEARCH])
    vector.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_step_before_a_reset_is_refused(mode):
    with pytest.raises(ResetNeeded, match=r"\[0, 1\]"):
        make(2, mode).step([SEARCH, SEARCH])


def test_a_refused_step_changes_no_environment():
    vector = make(2, "Disabled")
    vector.reset(seed=0)
    vector.step([SEARCH, ANSWER])
    before = len(vector.envs[0].transcript)
    with pytest.raises(ResetNeeded):
        vector.step([SEARCH, SEARCH])
    assert len(vector.envs[0].transcript) == before
    for actions in ("ab", {"a": 1, "b": 2}, None, iter([SEARCH, SEARCH])):
        with pytest.raises(ConfigurationError, match="must be a sequence of 2"):
            vector.step(actions)


class Bonus(QAEnv):
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return (observation, reward + 1, *rest)


def test_a_step_of_ones_own_is_not_passed_over():
    with pytest.raises(ConfigurationError, match=r"Bonus has a step\(\) of its own"):
        SearchVectorEnv(Bonus(), 2)


def test_a_vector_renders_each_environment():
    vector = make(2, render_mode="ansi")
    vector.reset(seed=0)
    assert [text.startswith("[environment]") for text in vector.render()] == [True, True]
    assert make(2).render() is None
