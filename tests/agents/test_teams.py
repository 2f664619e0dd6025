"""Teams: the scripted one is right, work is divided, and no policy can stop the others."""

from collections import defaultdict
from statistics import mean

import numpy as np
import pytest

from seekgym.agents import OracleAgent
from seekgym.agents.rollouts import play
from seekgym.agents.teams import (
    TEAMS,
    RandomAnswerer,
    ScriptedAnswerer,
    ScriptedLeader,
    ScriptedSearcher,
    Team,
    branches,
    difference_rewards,
    play_team,
)
from seekgym.agents.teams.plan import Capacity, dependencies, make_plan
from seekgym.agents.teams.ppo import IndependentPPO
from seekgym.corpora import ConfigurationError, Corpus, Document, ProofStep, Task, TaskSet
from seekgym.envs import QAEnv, team
from seekgym.leaderboard import compare_teams

SCRIPTED = TEAMS["scripted-team"]
KINDS = "('chain','conjunction','parallel','comparison','superlative')"
WORLDS = {
    "phantom": ("phantom:people=1000", {}),
    "phantom with branches": (
        "phantom:people=1000,kinds=('chain','comparison','superlative'),constraints=(0, 2)",
        {"rounds": 4},
    ),
    "graph": (
        f"knowledge:entities=600,kinds={KINDS}",
        {"rounds": 4, "search_turns": 9, "searchers": 4},
    ),
    "graph, the leader answers": (
        f"knowledge:entities=600,questions=100,kinds={KINDS}",
        {"rounds": 4, "search_turns": 9, "searchers": 4, "answerer": False},
    ),
    "qa": ("qa:hotpotqa-100", {}),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_scripted_team_is_right_on_every_task(name):
    world, options = WORLDS[name]
    env = team.parallel_env(world, **options)
    tasks = env.source.tasks
    assert len(tasks) == (100 if name in ("qa", "graph, the leader answers") else 500)
    for task in tasks:
        episode = play_team(env, SCRIPTED, options={"task": task.id})
        assert episode.outcome["exact_match"] == 1.0, team.draw_text(episode.trace)
        assert episode.outcome["evidence_recall"] == 1.0
        found = episode.outcome["metrics"]
        assert found["critical_path_ticks"] == found["ticks"]
        assert found["faults"] == 0


def critical_paths(env, tasks):
    """Return, by branches, the team's path and the oracle's, in ticks and in calls."""
    oracle = OracleAgent(env.source)
    rows = defaultdict(list)
    for task in tasks:
        episode = play_team(env, SCRIPTED, options={"task": task.id})
        found = episode.outcome["metrics"]
        turns = len(play(env.source, oracle, options={"task": task.id}).turns)
        path = (found["critical_path_ticks"], turns, found["critical_path_calls"], turns - 1)
        rows[branches(task)].append(path)
    return rows


def test_the_critical_path_is_shorter_where_there_are_branches(capsys):
    world, options = WORLDS["graph, the leader answers"]
    env = team.parallel_env(world, **options)
    rows = critical_paths(env, env.source.tasks)
    assert {1, 2, 3} <= rows.keys()
    ratios = {}
    for b, found in sorted(rows.items()):
        ticks, turns, calls, alone = (mean(column) for column in zip(*found, strict=True))
        ratios[b] = (ticks / turns, calls / alone)
        with capsys.disabled():
            print(f"\n{b} branches, {len(found)} tasks: ticks {ratios[b][0]:.2f} of the oracle's")
    for b, found in rows.items():
        longer = [row for row in found if row[2] > row[3]]
        assert not longer  # never more searches and reads one after the other
        assert ratios[b][1] < 0.75 or b == 1
        assert ratios[b][0] < 1 or b <= 2  # messages take ticks too, so few branches may not pay
    assert ratios[1][0] > 1  # nothing to divide: the messages are pure cost


def test_a_long_task_with_two_branches_takes_fewer_ticks():
    env = team.parallel_env(
        "knowledge:entities=600,questions=150,kinds=('parallel',)", rounds=3, search_turns=7
    )
    long = [task for task in env.source.tasks if is_two_by_two(task)]
    assert len(long) >= 10
    for found in critical_paths(env, long).values():
        assert all(ticks < turns for ticks, turns, *_ in found)


def is_two_by_two(task):
    """Tell whether a proof is two branches of two steps."""
    needs = dependencies(task)
    return len(needs) == 4 and sorted(map(len, needs)) == [0, 0, 1, 1] and len(set(needs)) == 3


def test_queries_name_nothing_that_their_steps_did_not_find():
    """The division is honest: each step waits for those whose findings its query names."""
    for name in ("phantom with branches", "graph"):
        source = team.parallel_env(WORLDS[name][0]).source
        titles = {word for document in source.corpus for word in document.title.split()}
        for task in source.tasks:
            needs = dependencies(task)
            for number, step in enumerate(task.proof):
                known, waiting = {task.question}, set(needs[number])
                while waiting:
                    need = waiting.pop()
                    known.add(task.proof[need].fact)
                    waiting |= needs[need]
                words = " ".join(known)
                names = [word.strip(",.") for word in step.query.split() if word[0].isupper()]
                missing = [word for word in names if word in titles - {"The"} and word not in words]
                assert not missing, (task.question, step, missing)


def test_a_plan_divides_branches_and_waits_for_what_it_needs():
    needs = [frozenset(), frozenset({0}), frozenset(), frozenset({2}), frozenset({1, 3})]
    plan = make_plan(needs, frozenset(), Capacity(2, 3, 1))
    assert plan.rounds == (((0, 1), (2, 3)), ((4,),))
    alone = make_plan(needs, frozenset(), Capacity(1, 3, 1))
    assert alone.rounds == (((0, 2, 1),), ((3, 4),))
    wide = [frozenset(), *[frozenset({0})] * 6]
    assert make_plan(wide, frozenset(), Capacity(3, 9, 2)).rounds[0] == ((0,),)
    assert make_plan(wide, frozenset({0}), Capacity(3, 9, 2)).rounds == (((1, 4), (2, 5), (3, 6)),)


DOCUMENTS = [Document("a", "Ann", "The friend of Ann is Bob."), Document("b", "Bob", "Rome is it.")]


def made_case(searchers=3):
    task = Task("t", "Ann?", ("Bob",), ("a",), 1, proof=(ProofStep("Ann", "a", "It is Bob."),))
    world = QAEnv(Corpus.from_documents(DOCUMENTS), TaskSet([task]), k=1)
    return team.parallel_env(world, searchers=searchers, local=["words_sent"], mix=0.5)


class AsksAll(team.RolePolicy):
    """Asks every searcher the same, once."""

    role = "leader"

    def act(self, observation, info):
        """Assign, then hand over."""
        if info["round"]:
            return {"name": "hand_over", "arguments": {}}
        asked = dict.fromkeys(self.env.rules.searcher_names, "Ann")
        return {"name": "assign", "arguments": asked}


class OnlyTheFirstFinds(team.RolePolicy):
    """Reports the answer if it is the first searcher, and something else if not."""

    role = "searcher"

    def act(self, observation, info):
        """Report at once."""
        text = "It is Bob." if self.agent == "searcher_0" else "Nothing."
        return {"name": "report", "arguments": {"text": text}}


class AllFind(OnlyTheFirstFinds):
    """Reports the answer, whoever it is."""

    def act(self, observation, info):
        """Report at once."""
        return {"name": "report", "arguments": {"text": "It is Bob."}}


class BelievesTheFirstLine(team.RolePolicy):
    """Answers by the reports."""

    role = "answerer"

    def act(self, observation, info):
        """Answer what a report says."""
        return {"name": "answer", "arguments": {"text": "Bob" if "Bob." in observation else "?"}}


class Ignores(BelievesTheFirstLine):
    """Knows it anyway."""

    def act(self, observation, info):
        """Answer."""
        return {"name": "answer", "arguments": {"text": "Bob"}}


@pytest.mark.parametrize(
    ("searcher", "answerer", "expected"),
    [
        (OnlyTheFirstFinds, BelievesTheFirstLine, (1.0, 0.0, 0.0)),
        (OnlyTheFirstFinds, Ignores, (0.0, 0.0, 0.0)),
        (AllFind, BelievesTheFirstLine, (0.0, 0.0, 0.0)),  # either of the others would do
    ],
)
def test_difference_rewards_are_exact(searcher, answerer, expected):
    worth = difference_rewards(made_case(), Team("made", AsksAll, searcher, answerer))
    assert tuple(worth.values()) == expected
    assert list(worth) == ["searcher_0", "searcher_1", "searcher_2"]


def test_the_scripted_searchers_are_worth_the_whole_return_if_nobody_can_step_in():
    env = team.parallel_env("phantom:people=200,hops=(2, 2)", searchers=2, rounds=1)
    worth = difference_rewards(env, SCRIPTED, options={"task": env.source.tasks[0].id})
    assert worth == {"searcher_0": 1.0, "searcher_1": 0.0}


def test_difference_rewards_refuse_policies_that_are_not_deterministic():
    draws = iter(range(1_000))

    class Drifts(OnlyTheFirstFinds):
        def act(self, observation, info):
            return {"name": "report", "arguments": {"text": f"{next(draws)}"}}

    with pytest.raises(ConfigurationError, match="another episode"):
        difference_rewards(made_case(), Team("drifts", AsksAll, Drifts, Ignores))


class Raises(ScriptedSearcher):
    """Fails in a way of its own."""

    error: Exception = ValueError("broken")

    def act(self, observation, info):
        """Fail if it is the first searcher."""
        if self.agent == "searcher_0":
            raise self.error
        return super().act(observation, info)


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


def failing(fault):
    if fault == "reports nothing":

        class Silent(Raises):
            def act(self, observation, info):
                if self.agent == "searcher_0":
                    return {"name": "report", "arguments": {"text": ""}}
                return super().act(observation, info)

        return Silent
    if fault == "never reports":

        class Endless(Raises):
            def act(self, observation, info):
                if self.agent == "searcher_0":
                    return {"name": "search", "arguments": {"query": "x"}}
                return super().act(observation, info)

        return Endless
    if fault == "cannot begin":

        class Stillborn(Raises):
            def reset(self, seed):
                if self.agent == "searcher_0":
                    raise RuntimeError("stillborn")
                super().reset(seed)

        return Stillborn
    return type("Fails", (Raises,), {"error": fault})


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (ValueError("broken\udcb0"), "fault", "crashed"),
        (Unprintable(), "fault", "crashed"),
        (TimeoutError(), "fault", "timed_out"),
        ("cannot begin", "fault", "crashed"),
        ("reports nothing", "report", "empty_report"),
        ("never reports", "fault", "last_turn"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_searcher_that_fails_does_not_stop_the_team(fault, kind, code):
    class Careful(ScriptedLeader):
        """Does without the first searcher once it has failed."""

        def act(self, observation, info):
            call = super().act(observation, info)
            if info["round"] and call["name"] == "assign":
                asked = call["arguments"]
                moved = {f"searcher_{n + 1}": text for n, text in enumerate(asked.values())}
                return {"name": "assign", "arguments": moved}
            return call

    env = team.parallel_env("phantom:people=200,hops=(1, 2)", searchers=3)
    players = Team("careful", Careful, failing(fault), ScriptedAnswerer)
    for seed in range(5):
        episode = play_team(env, players, seed=seed)
        assert episode.outcome["exact_match"] == 1.0
        found = [event for event in episode.trace if event.agent == "searcher_0" and event.error]
        assert {(event.kind, event.error) for event in found} == {(kind, code)}
        assert any("searcher_0" in e.detail.get("missing", ()) for e in episode.trace)


@pytest.mark.parametrize("role", ["leader", "answerer"])
@pytest.mark.parametrize("answerer", [True, False])
def test_a_leader_or_answerer_that_fails_ends_the_episode_in_good_order(role, answerer):
    def broken(policy):
        def act(self, observation, info):
            raise RuntimeError("broken")

        return type("Broken", (policy,), {"act": act})

    leader = broken(ScriptedLeader) if role == "leader" else ScriptedLeader
    last = broken(ScriptedAnswerer) if role == "answerer" else RandomAnswerer
    env = team.parallel_env("qa:hotpotqa-100", answerer=answerer)
    episode = play_team(env, Team("broken", leader, ScriptedSearcher, last), seed=1)
    is_lost = role == "answerer" if answerer else role == "leader"
    assert (episode.outcome["answer"] is None) == is_lost
    assert episode.outcome["valid"]
    assert episode.trace[-1].kind == "stop"


def test_an_external_team_is_one_class_a_role():
    env = made_case()
    episode = play_team(env, Team("mine", AsksAll, AllFind, BelievesTheFirstLine))
    assert episode.outcome["exact_match"] == 1.0
    assert episode.returns["answerer_0"] == 0.5  # half of every reward is the team's
    assert episode.returns["searcher_0"] == 0.5 - 0.5 * 3 / 100
    with pytest.raises(ConfigurationError, match="plays searcher, not leader"):
        Team("wrong", AllFind, AllFind)
    with pytest.raises(ConfigurationError, match="no answerer"):
        play_team(env, Team("short", AsksAll, AllFind))


@pytest.mark.parametrize("name", TEAMS)
def test_teams_play_the_same_episode_again(name):
    env = team.parallel_env("qa:hotpotqa-100")
    first = play_team(env, TEAMS[name], seed=3)
    play_team(env, TEAMS["random-team"], seed=4)
    assert play_team(env, TEAMS[name], seed=3) == first


def test_reading_beats_chance_and_the_script_beats_reading():
    found = compare_teams(
        team.parallel_env("qa:hotpotqa-100"), agents=["retrieve-then-read", "oracle"], seed=0
    )
    scores = {row.player: row.metrics["f1"] for row in found.rows}
    assert scores["random-team"] < scores["reading-team"] < scores["scripted-team"] == 1.0
    assert scores["oracle"] == 1.0
    recall = {row.player: row.metrics["evidence_recall"] for row in found.rows}
    assert recall["reading-team"] > recall["retrieve-then-read"]
    assert [row.player for row in found.rows if row.sees_gold] == ["scripted-team", "oracle"]
    assert {len(traces) for traces in found.traces.values()} == {100}


def learned_and_chance(seed, episodes):
    options = {"searchers": 2, "rounds": 2}
    env = team.menu_parallel_env("phantom:people=200,hops=(1, 2)", **options)
    held_out = team.menu_parallel_env("phantom:people=200,hops=(1, 2),split=test", **options)
    tasks = [task.id for task in held_out.source.tasks[:100]]
    learner = IndependentPPO(env, seed=seed)
    untrained = mean(learner.evaluate(held_out, tasks))
    learner.train(lambda done: done.episodes < episodes)
    chance = [
        play_team(held_out, TEAMS["random-team"], seed=i, options={"task": task})
        for i, task in enumerate(tasks)
    ]
    expected = mean(episode.outcome["team_return"] for episode in chance)
    return mean(learner.evaluate(held_out, tasks)), expected, untrained


def test_independent_ppo_learns_from_menus():
    learned, chance, untrained = learned_and_chance(seed=0, episodes=320)
    assert learned >= max(2 * chance, 2 * untrained, 0.2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_independent_ppo_learns_with_each_seed(seed):
    learned, chance, untrained = learned_and_chance(seed, episodes=2_000)
    assert learned >= max(2 * chance, 2 * untrained, 0.3)


def test_the_learner_is_the_same_for_a_seed():
    env = team.menu_parallel_env("phantom:people=200,hops=(1, 2)", searchers=1, rounds=1)
    curves = []
    for _ in range(2):
        np.random.seed(len(curves))
        learner = IndependentPPO(env, seed=5)
        curves.append(learner.train(lambda done: done.episodes < 64))
    assert curves[0] == curves[1]
    assert curves[0] != IndependentPPO(env, seed=6).train(lambda done: done.episodes < 64)
