"""Every team configuration through PettingZoo's own tests, and stricter ones of ours."""

import json
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import (
    api_test,
    max_cycles_test,
    parallel_api_test,
    parallel_seed_test,
    seed_test,
)
from pettingzoo.test.state_test import state_test
from pettingzoo.utils import parallel_to_aec

from seekgym.corpora import ConfigurationError
from seekgym.envs import ToolCalls, team
from seekgym.registration import TEAM_CONFIGURATIONS

EXPECTED = (  # what PettingZoo says of any environment with observations of its own kind
    "reset options .'options'. are not known",
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "Action space for each agent probably should be",
    "State is not NumPy array",
    "State space for each environment probably should be",
)


def made(team_id, kind, **changes):
    options = TEAM_CONFIGURATIONS[team_id] | changes
    maker = {"parallel": "parallel_env", "aec": "env"}[kind]
    return getattr(team, f"{'menu_' if 'Menu' in team_id else ''}{maker}")(**options)


def pytest_generate_tests(metafunc):
    if "changes" not in metafunc.fixturenames:
        return
    rows = []
    for team_id in TEAM_CONFIGURATIONS:
        for searchers in range(1, 9):
            for answerer in (True, False):
                is_share = (searchers, answerer) in ((1, False), (2, True), (8, True))
                rows.append(
                    pytest.param(
                        team_id,
                        {"searchers": searchers, "answerer": answerer},
                        id=f"{team_id}-{searchers}-{answerer}",
                        marks=() if is_share else pytest.mark.exhaustive,
                    )
                )
    metafunc.parametrize(("team_id", "changes"), rows)


@pytest.fixture(autouse=True)
def _only_expected_warnings():
    with warnings.catch_warnings():
        for text in EXPECTED:
            warnings.filterwarnings("ignore", message=text)
        yield


def test_pettingzoo_tests_pass(team_id, changes, capsys):
    parallel_api_test(made(team_id, "parallel", **changes), num_cycles=60)
    api_test(made(team_id, "aec", **changes), num_cycles=60)
    parallel_seed_test(lambda: made(team_id, "parallel", **changes), num_cycles=60)
    seed_test(lambda: made(team_id, "aec", **changes), num_cycles=60)
    state_test(made(team_id, "aec", **changes), made(team_id, "parallel", **changes))
    out = capsys.readouterr().out
    assert "Passed Parallel API test" in out
    assert "Passed API test" in out


class Tireless:
    """A team of which nobody ever ends anything by chance: only the cycles do."""

    def __init__(self, team_id, changes):
        self.arguments = TEAM_CONFIGURATIONS[team_id] | changes | {"rounds": 9, "search_turns": 9}

    def parallel_env(self, max_cycles):
        options = self.arguments | {"max_cycles": max_cycles}
        env = team.parallel_env(**options)  # of a menu team too: a menu always offers an end
        for agent, space in env.action_spaces.items():
            endless = [tool for tool in space.tools if tool.name in ("assign", "search")]
            env.action_spaces[agent] = ToolCalls(endless or space.tools, seed=0)
        return env

    def env(self, max_cycles):
        return parallel_to_aec(self.parallel_env(max_cycles))


def test_pettingzoos_max_cycles_test_passes(team_id, changes):
    endless = Tireless(team_id, changes)
    max_cycles_test(SimpleNamespace(parallel_env=endless.parallel_env, env=endless.env))


def test_no_episode_exceeds_its_cycles(team_id, changes):
    for max_cycles in (1, 3):
        env = made(team_id, "aec", max_cycles=max_cycles, **changes)
        env.reset(seed=0)
        counts = dict.fromkeys(env.possible_agents, 0)
        for agent in env.agent_iter():
            *_, terminated, truncated, _ = env.last()
            counts[agent] += not (terminated or truncated)
            env.step(None if terminated or truncated else sampled(env, agent))
        assert 1 <= max(counts.values()) <= max_cycles
        assert env.parallel.trace[-1].tick <= max_cycles


def sampled(env, agent):
    seen = env.observe(agent) if hasattr(env, "observe") else None
    return env.action_space(agent).sample((seen or {}).get("action_mask"))


def record(env, seed, source):
    """Play whole episodes of random actions; return all that came back."""
    rows = []
    for episode in range(3):
        observations, infos = env.reset(seed=seed if episode == 0 else None)
        rows.append((observations, infos))
        while env.agents:
            actions = {a: source(env, observations, a) for a in env.asked()}
            step = env.step(actions)
            observations = step[0]
            rows.append((actions, step))
    return rows


def seeded(seed):
    generators = {}

    def act(env, observations, agent):
        if agent not in generators:
            generators[agent] = pickle.loads(pickle.dumps(env.action_space(agent)))
            generators[agent].seed(seed)
        return generators[agent].sample(observations[agent].get("action_mask"))

    return act


def test_whole_episodes_are_the_same_for_a_seed(team_id, changes):
    first = record(made(team_id, "parallel", **changes), 4, seeded(1))
    np.random.seed(3)
    again = record(made(team_id, "parallel", **changes), 4, seeded(1))
    assert repr(first) == repr(again)
    other = record(made(team_id, "parallel", **changes), 5, seeded(1))
    assert repr(first) != repr(other)


def test_aec_and_parallel_give_the_same_trajectories(team_id, changes):
    parallel, aec = made(team_id, "parallel", **changes), made(team_id, "aec", **changes)
    for seed in range(4):
        act_parallel, act_aec = seeded(seed), seeded(seed)
        observations, infos = parallel.reset(seed=seed)
        totals = dict.fromkeys(parallel.agents, 0.0)
        asked = []
        while parallel.agents:
            asked += parallel.asked()
            actions = {a: act_parallel(parallel, observations, a) for a in parallel.asked()}
            observations, rewards, ends, cuts, infos = parallel.step(actions)
            totals = {agent: totals[agent] + reward for agent, reward in rewards.items()}
        aec.reset(seed=seed)
        found, seen, turns = dict.fromkeys(aec.agents, 0.0), {}, []
        for agent in aec.agent_iter():
            observation, reward, terminated, truncated, info = aec.last()
            found[agent] += reward
            if terminated or truncated:
                seen[agent] = (repr(observation), terminated, truncated, repr(info))
                aec.step(None)
            else:
                turns.append(agent)
                aec.step(act_aec(aec, {agent: observation}, agent))
        assert turns == asked
        assert found == totals
        assert aec.parallel.trace == parallel.trace
        assert seen == {
            a: (repr(observations[a]), ends[a], cuts[a], repr(infos[a])) for a in totals
        }


def test_observations_states_and_samples_belong_to_their_spaces(team_id, changes):
    env = made(team_id, "parallel", **changes)
    for agent in env.possible_agents:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent).contains(env.action_space(agent).sample())
    for row in record(env, 7, seeded(2)):
        observations = row[0] if "leader_0" in row[1] else row[1][0]
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation)
        assert env.state_space.contains(env.state())


def test_observations_can_be_saved_and_read_again(team_id, changes, tmp_path):
    """PettingZoo's own check saves images only; texts go to JSON, and menus to NumPy's files."""
    for number, row in enumerate(record(made(team_id, "parallel", **changes), 9, seeded(4))):
        observations = row[0] if "leader_0" in row[1] else row[1][0]
        for observation in observations.values():
            if "text" in observation:
                assert json.loads(json.dumps(observation, ensure_ascii=False)) == observation
                observation["text"].encode()
            elif number < 5:
                np.savez(tmp_path / "saved.npz", **observation)
                saved = np.load(tmp_path / "saved.npz")
                assert all((saved[key] == observation[key]).all() for key in observation)


def test_rewards_are_the_sum_of_their_terms(team_id, changes):
    env = made(team_id, "parallel", local=list(team.LOCAL_TERMS), mix=0.3, **changes)
    for row in record(env, 8, seeded(3)):
        if "leader_0" in row[1]:
            continue
        _, rewards, _, _, infos = row[1]
        for agent, reward in rewards.items():
            assert sum(infos[agent]["reward_terms"].values()) == reward


def test_the_registry_makes_every_configuration():
    if not hasattr(pettingzoo, "register"):
        pytest.skip("this PettingZoo has no registry")
    for team_id in TEAM_CONFIGURATIONS:
        parallel = pettingzoo.make("parallel", team_id, searchers=2, max_cycles=5)
        assert isinstance(parallel, team.TeamParallelEnv)
        assert parallel.rules.max_cycles == 5
        assert isinstance(pettingzoo.make("aec", team_id), team.TeamAECEnv)
        assert pettingzoo.spec("parallel", team_id).id == team_id


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"searchers": 0}, "searchers must be a whole number of at least 1"),
        ({"searchers": 65}, "at most 64"),
        ({"search_turns": 1}, "search_turns must be"),
        ({"mix": 1.5}, "mix must be a number from 0 to 1"),
        ({"serchers": 3}, "did you mean 'searchers'"),
        ({"local": ["new_evidense"]}, "did you mean 'new_evidence'"),
        ({"world": "fantom:people=50"}, "known: knowledge, phantom, qa"),
        ({"world": "phantom:people="}, "cannot be read"),
        ({"world": "phantom:persons=50"}, "argument"),
        ({"world": 3}, "must be a text or a search environment"),
        ({"render_mode": "human"}, "unknown render_mode"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        team.parallel_env(**{"world": "qa:hotpotqa-100", **arguments})


def test_a_mistyped_option_is_not_silent():
    env = team.parallel_env("qa:hotpotqa-100")
    with pytest.warns(UserWarning, match="'tsak'"):
        env.reset(options={"tsak": 1})
    with pytest.raises(ConfigurationError, match="searcher to mute"):
        env.reset(options={"muted": ("searcher_9",)})
