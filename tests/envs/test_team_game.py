"""The rules of a team on small, made cases: who acts, who is paid, what the trace says."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from seekgym.corpora import (
    BackendError,
    ConfigurationError,
    Corpus,
    CorpusError,
    Document,
    ProofStep,
    Task,
    TaskSet,
)
from seekgym.envs import ProtocolError, QAEnv, team
from seekgym.envs.team.trace import find_conflicts
from seekgym.testing.probe import HOSTILE

DOCUMENTS = [
    Document("a", "Ann", "The job of Ann is baker. The friend of Ann is Bob."),
    Document("b", "Bob", "The town of Bob is Rome."),
    Document("c", "Cid", "The town of Cid is Oslo."),
]
TASK = Task(
    "t",
    "What is the town of the friend of Ann?",
    ("Rome",),
    ("a", "b"),
    2,
    proof=(
        ProofStep("Ann", "a", "The friend of Ann is Bob."),
        ProofStep("Bob", "b", "The town of Bob is Rome."),
    ),
)


def small(task=TASK, retriever=None, **options):
    corpus = Corpus.from_documents(DOCUMENTS)
    world = QAEnv(corpus, TaskSet([task]), k=1, retriever=retriever)
    env = team.parallel_env(world, **options)
    env.reset(seed=0)
    return env


def assign(**asked):
    return {"leader_0": {"name": "assign", "arguments": asked}}


def search(query):
    return {"name": "search", "arguments": {"query": query}}


def report(text):
    return {"name": "report", "arguments": {"text": text}}


def answer(text):
    return {"name": "answer", "arguments": {"text": text}}


HAND_OVER = {"leader_0": {"name": "hand_over", "arguments": {}}}


def kinds(env):
    return [(event.tick, event.agent, event.kind) for event in env.trace]


def test_a_round_goes_from_assignment_to_answer():
    env = small(searchers=3)
    assert env.asked() == ("leader_0",)
    observations, *_, infos = env.step(assign(searcher_0="Ann", searcher_2="Bob"))
    assert env.asked() == ("searcher_0", "searcher_2")
    assert observations["searcher_0"] == {"text": "Ann"}
    assert observations["searcher_1"] == {"text": "You have no assignment."}
    assert infos["searcher_0"]["tools"] == ("search", "read", "report")
    assert not infos["searcher_1"]["is_asked"]
    observations, *_, infos = env.step({"searcher_0": search("Ann"), "searcher_2": search("Bob")})
    assert "The friend of Ann is Bob." in observations["searcher_0"]["text"]
    assert "Rome" not in observations["searcher_0"]["text"]  # contexts are apart
    assert infos["searcher_2"]["documents"] == ("b",)
    env.step({"searcher_0": report("The friend of Ann is Bob.")})
    assert env.asked() == ("searcher_2",)
    observations, *_ = env.step({"searcher_2": report("The town of Bob is Rome.")})
    assert env.asked() == ("leader_0",)
    assert observations["leader_0"]["text"] == (
        "[searcher_0] Ann\nThe friend of Ann is Bob.\n\n"
        "[searcher_2] Bob\nThe town of Bob is Rome.\n\nYou may assign 2 more times."
    )
    observations, *_ = env.step(HAND_OVER)
    assert observations["answerer_0"]["text"].startswith(f"{TASK.question}\n\n[searcher_0] Ann")
    observations, rewards, ends, cuts, infos = env.step({"answerer_0": answer("Rome")})
    assert rewards == dict.fromkeys(env.possible_agents, 1.0)
    assert all(ends.values())
    assert not any(cuts.values())
    assert env.agents == []
    last = infos["searcher_1"]
    assert (last["exact_match"], last["evidence_recall"], last["answer"]) == (1.0, 1.0, "Rome")
    assert last["gold_answers"] == ("Rome",)
    with pytest.raises(ResetNeeded):
        env.step({})


def test_gold_is_told_only_at_the_end():
    env = small()
    *_, infos = env.step(assign(searcher_0="Ann"))
    assert not any("gold_answers" in info or "exact_match" in info for info in infos.values())


def test_without_an_answerer_the_leader_answers():
    env = small(answerer=False, searchers=1)
    assert env.possible_agents == ["leader_0", "searcher_0"]
    env.step(assign(searcher_0="Ann"))
    env.step({"searcher_0": report("Rome")})
    _, rewards, ends, *_ = env.step({"leader_0": answer("Rome")})
    assert rewards["searcher_0"] == 1.0
    assert all(ends.values())


def test_actions_of_those_who_are_not_asked_are_ignored():
    env = small()
    env.step({**assign(searcher_0="Ann"), "searcher_1": search("Cid"), "answerer_0": answer("x")})
    assert env.asked() == ("searcher_0",)
    assert not any(event.agent in ("searcher_1", "answerer_0") for event in env.trace)


def test_one_that_is_asked_and_sends_nothing_loses_its_turn():
    env = small()
    env.step(assign(searcher_0="Ann"))
    *_, infos = env.step({})
    assert infos["searcher_0"]["error"] == "no_action"
    assert infos["searcher_0"]["turns"] == 1
    assert env.trace[-1].kind == "fault"


def test_the_last_turn_takes_nothing_but_a_report():
    env = small(search_turns=3, searchers=2)
    env.step(assign(searcher_0="Ann", searcher_1="Bob"))
    env.step({"searcher_0": search("Ann"), "searcher_1": search("Bob")})
    observations, *_, infos = env.step({"searcher_0": search("Bob"), "searcher_1": search("Cid")})
    assert "last turn" in observations["searcher_0"]["text"]
    assert infos["searcher_0"]["tools"] == ("report",)
    observations, *_ = env.step({"searcher_0": search("Ann"), "searcher_1": report("Rome")})
    assert "[searcher_0] Ann\n(no report)" in observations["leader_0"]["text"]
    assert "[searcher_1] Bob\nRome" in observations["leader_0"]["text"]
    [fault] = [event for event in env.trace if event.kind == "fault"]
    assert fault.error == "last_turn"
    assert env.trace[-1].detail["missing"] == ("searcher_0",)


def test_reports_are_cut_to_their_words():
    env = small(reports=3, searchers=1)
    env.step(assign(searcher_0="Ann"))
    observations, *_ = env.step({"searcher_0": report("one two three four five")})
    assert "one two three …" in observations["leader_0"]["text"]
    assert "four" not in observations["leader_0"]["text"]
    env.step(assign(searcher_0="Ann"))
    observations, *_ = env.step({"searcher_0": report("x" * 10_000)})
    assert len(observations["leader_0"]["text"]) < 300


def test_074_the_budget_is_enforced_on_the_sum_and_what_was_found_is_kept():
    env = small(rounds=3, searchers=2, search_turns=4)
    delegations = 0
    while env.agents and env.asked() != ("answerer_0",):
        if env.asked() == ("leader_0",):
            observations, *_, infos = env.step(assign(searcher_0="Ann", searcher_1="Bob"))
            delegations += infos["leader_0"]["error"] is None
        else:
            env.step({agent: report(f"{agent} found Rome.") for agent in env.asked()})
    assert delegations == 3  # ten were wanted
    assert "searcher_1 found Rome." in observations["answerer_0"]["text"]
    *_, infos = env.step({"answerer_0": answer("Rome")})
    assert infos["leader_0"]["exact_match"] == 1.0


def test_074_the_searches_of_all_together_are_bounded():
    env = small(rounds=5, searchers=3, search_turns=5, team_calls=4)
    env.step(assign(searcher_0="Ann", searcher_1="Bob", searcher_2="Cid"))
    env.step({agent: search("Ann") for agent in env.asked()})
    *_, infos = env.step({agent: search("Bob") for agent in env.asked()})
    assert [infos[a]["error"] for a in env.rules.searcher_names] == [
        None,
        "team_budget",
        "team_budget",
    ]
    assert all(infos[agent]["tools"] == ("report",) for agent in env.asked())
    observations, *_, infos = env.step({agent: report("Bob") for agent in env.asked()})
    assert infos["leader_0"]["tools"] == ("hand_over",)
    assert "takes nothing but hand_over" in observations["leader_0"]["text"]
    *_, infos = env.step(assign(searcher_0="Ann"))
    assert env.asked() == ("answerer_0",)  # handed over for it
    *_, infos = env.step({"answerer_0": answer("Rome")})
    assert infos["leader_0"]["calls"]["search"] == 4
    assert infos["leader_0"]["evidence_recall"] == 1.0


def test_074_a_leader_that_never_answers_is_cut_off():
    env = small(rounds=2, answerer=False, searchers=1)
    while env.agents:
        step = env.step({"leader_0": {"name": "look"}, "searcher_0": report("x")})
    assert all(step[3].values())
    assert step[4]["leader_0"]["answer"] is None
    assert step[4]["leader_0"]["exact_match"] == 0.0
    assert env.trace[-1].detail["why"] == "no answer"


def test_040_one_query_to_three_searchers_gives_each_document_once():
    env = small(searchers=3, local=["new_evidence", "duplication"], mix=0.5)
    env.step(assign(searcher_0="Ann", searcher_1="Ann", searcher_2="Ann"))
    *_, infos = env.step({agent: search("Ann") for agent in env.asked()})
    terms = [infos[agent]["reward_terms"] for agent in env.rules.searcher_names]
    assert [term["new_evidence"] for term in terms] == [0.25, 0.0, 0.0]
    assert [term["duplication"] for term in terms] == [0.0, -0.5, -0.5]
    observations, *_, infos = env.step({agent: report("Bob.") for agent in env.asked()})
    assert infos["leader_0"]["documents"] == ("a",)
    assert observations["leader_0"]["text"].count("Bob.") == 1
    assert "(the same as searcher_0)" in observations["leader_0"]["text"]
    env.step(HAND_OVER)
    *_, infos = env.step({"answerer_0": answer("x")})
    assert infos["leader_0"]["evidence_recall"] == 0.5


def test_040_documents_that_are_the_same_text_are_not_counted_twice():
    texts = [Document(str(number), "Ann", "Ann is here.") for number in range(3)]
    world = QAEnv(Corpus.from_documents(texts), TaskSet([Task("t", "Ann?", ("x",), ("0",))]), k=3)
    env = team.parallel_env(world, searchers=2)
    env.reset()
    env.step(assign(searcher_0="Ann", searcher_1="Ann"))
    env.step({agent: search("Ann") for agent in env.asked()})
    *_, infos = env.step({agent: report("Ann is here.") for agent in env.asked()})
    assert sorted(infos["leader_0"]["documents"]) == ["0", "1", "2"]


def test_041_a_search_that_always_fails_ends_within_the_ticks():
    class Empty:
        name = "empty"

        def search(self, queries, k):
            return [[] for _ in queries]

    env = small(retriever=Empty(), rounds=2, search_turns=5, searchers=2)
    ticks = 0
    while env.agents:
        actions = dict.fromkeys(env.asked(), search("Ann"))
        if env.asked() == ("leader_0",):
            actions = assign(searcher_0="Ann", searcher_1="Bob")
        _, _, ends, cuts, infos = env.step(actions)
        ticks += 1
    assert ticks <= env.rules.longest
    assert all(cuts.values())
    assert not any(ends.values())
    assert infos["leader_0"]["valid"]


def test_068_nobody_is_skipped_when_a_searcher_ends_in_its_turn():
    env = team.TeamAECEnv(small(searchers=6))
    env.reset(seed=0)
    env.step({"name": "assign", "arguments": {f"searcher_{i}": "Ann" for i in range(6)}})
    order = []
    for _ in range(11):
        order.append(int(env.agent_selection[-1]))
        env.step(report("done") if len(order) == 3 else search("Ann"))
    assert order == [0, 1, 2, 3, 4, 5, 0, 1, 3, 4, 5]


def test_071_teams_on_one_retriever_share_no_state():
    world = QAEnv()
    envs = [team.parallel_env(world, searchers=2) for _ in range(16)]
    assert len({id(env.source.retriever) for env in envs}) == 1
    tasks = [task.id for task in world.all_tasks[:16]]
    for env, task in zip(envs, tasks, strict=True):
        env.reset(seed=0, options={"task": task})
        env.step(assign(searcher_0="x", searcher_1="y"))
    for turn in range(3):
        for number, env in enumerate(envs):
            if number % 3 >= turn:
                env.step({"searcher_0": search("Nolan"), "searcher_1": search("film")})
    for number, env in enumerate(envs):
        assert env.task.id == tasks[number]
        calls = [event for event in env.trace if event.kind == "call"]
        assert len(calls) == 2 * (number % 3 + 1)
        assert env.source.transcript[0].text == env.task.question


def test_062_observations_and_infos_of_the_past_do_not_change():
    env = small()
    kept = env.step(assign(searcher_0="Ann"))
    before = pickle.dumps(kept)
    env.step({"searcher_0": search("Ann")})
    env.reset()
    assert pickle.dumps(kept) == before


def test_064_and_065_seeds_decide_the_sequence_of_tasks():
    first, second = team.parallel_env("qa:hotpotqa-100"), team.parallel_env("qa:hotpotqa-100")

    def tasks(env):
        env.reset(seed=3)
        found = [env.task.id]
        for _ in range(4):
            np.random.seed(0)
            env.reset()
            found.append(env.task.id)
        return found

    expected = tasks(first)
    assert len(set(expected)) > 1
    first.reset(seed=3)
    second.reset(seed=3)
    together = [(first.task.id, second.task.id)]
    for _ in range(4):
        first.reset()
        second.reset()
        together.append((first.task.id, second.task.id))
    assert together == [(task, task) for task in expected]


def test_067_copies_and_snapshots_go_on_alike():
    env = small(searchers=2)
    env.step(assign(searcher_0="Ann", searcher_1="Bob"))
    state = pickle.loads(pickle.dumps(env.snapshot()))
    assert len(pickle.dumps(state)) < 20_000
    copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env), small(searchers=2)]
    copies[2].restore(state)

    def go_on(env):
        first = env.step({"searcher_0": search("Ann"), "searcher_1": report("Rome")})
        return repr((first, env.step({"searcher_0": report("Bob")}), env.trace))

    expected = go_on(env)
    assert [go_on(other) for other in copies] == [expected] * 3
    env.restore(state)
    assert go_on(env) == expected
    with pytest.raises(ConfigurationError, match="hash"):
        small(searchers=3).restore(state)


@pytest.mark.parametrize("text", ["\ud83c", "Paris\udcb0"])
def test_073_lone_surrogates_survive_the_episode_and_the_trace(text, tmp_path):
    env = small(searchers=1)
    env.step(assign(searcher_0=text))
    env.step({"searcher_0": search(text)})
    env.step({"searcher_0": report(text)})
    env.step(HAND_OVER)
    *_, infos = env.step({"answerer_0": answer(text)})
    assert infos["leader_0"]["exact_match"] == 0.0
    team.write_traces([env.trace], tmp_path / "t.jsonl")
    [again] = team.read_traces(tmp_path / "t.jsonl")
    assert tuple(again) == env.trace


@pytest.mark.parametrize("agent", ["leader_0", "searcher_0", "answerer_0"])
@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_no_action_raises(agent, hostile):
    env = small(searchers=1)
    if agent != "leader_0":
        env.step(assign(searcher_0="Ann"))
    if agent == "answerer_0":
        env.step({"searcher_0": report("x")})
        env.step(HAND_OVER)
    assert env.asked() == (agent,)
    observations, *_, infos = env.step({agent: hostile})
    if not env.action_space(agent).contains(hostile):
        assert infos[agent]["error"] is not None
    for name, observation in observations.items():
        assert env.observation_space(name).contains(observation)
        observation["text"].encode()
    team.draw_html([env.trace]).encode()


def test_a_failing_backend_is_nobodys_score():
    class Broken:
        name = "broken"

        def search(self, queries, k):
            raise BackendError("on purpose")

    env = small(retriever=Broken())
    env.step(assign(searcher_0="Ann", searcher_1="Bob"))
    _, rewards, ends, cuts, infos = env.step({a: search("Ann") for a in env.asked()})
    assert all(cuts.values())
    assert not any(ends.values())
    assert set(rewards.values()) == {0.0}
    for info in infos.values():
        assert (info["failure"], info["valid"]) == ("infrastructure", False)
        assert info["exact_match"] is None


def test_local_terms_are_what_they_say():
    env = small(searchers=2, local=list(team.LOCAL_TERMS), mix=0.0)
    *_, infos = env.step(assign(searcher_0="friend of Ann", searcher_1="weather in Rome"))
    terms = infos["leader_0"]["reward_terms"]
    assert terms["split_correctness"] == 0.5  # one of two sub-questions holds a step
    assert terms["words_sent"] == -0.06
    *_, infos = env.step({"searcher_0": search("Ann"), "searcher_1": search("Cid")})
    assert infos["searcher_0"]["reward_terms"]["new_evidence"] == 0.5
    assert infos["searcher_1"]["reward_terms"]["new_evidence"] == 0.0
    said = "The friend of Ann is Bob. The friend of Ann is Zoe. It is so."
    *_, infos = env.step({"searcher_0": report(said), "searcher_1": report("")})
    assert infos["searcher_0"]["reward_terms"]["report_faithfulness"] == 0.5
    assert infos["searcher_1"]["reward_terms"]["report_faithfulness"] == 0.0
    env.step(HAND_OVER)
    _, rewards, *_, infos = env.step({"answerer_0": answer("Rome")})
    assert infos["leader_0"]["reward_terms"]["speed_up"] == 1 - 5 / 7
    assert rewards["searcher_0"] == 0.0  # mix=0: the outcome is not paid
    assert infos["leader_0"]["team_return"] == 1.0


def test_a_local_term_of_ones_own():
    class Thrift(team.LocalTerm):
        """Pays a searcher that reports at once."""

        role = "searcher"

        def local_value(self, act):
            """Return 1 for a report without a search."""
            return float(act.report is not None and not act.seen)

    env = small(searchers=2, local=[Thrift(weight=2.0)], mix=0.5)
    env.step(assign(searcher_0="Ann", searcher_1="Bob"))
    _, rewards, *_, infos = env.step({"searcher_0": report("x"), "searcher_1": search("Bob")})
    assert (rewards["searcher_0"], rewards["searcher_1"], rewards["leader_0"]) == (1.0, 0.0, 0.0)
    assert infos["searcher_0"]["reward_terms"]["thrift"] == 1.0


def test_muted_reports_are_read_by_nobody():
    env = small(searchers=2)
    env.reset(seed=0, options={"muted": ("searcher_0",)})
    env.step(assign(searcher_0="Ann", searcher_1="Bob"))
    observations, *_ = env.step({agent: report(f"by {agent}") for agent in env.asked()})
    assert "(no report)" in observations["leader_0"]["text"]
    assert "by searcher_0" not in observations["leader_0"]["text"]
    observations, *_ = env.step(HAND_OVER)
    assert "by searcher_0" not in observations["answerer_0"]["text"]
    assert "by searcher_1" in observations["answerer_0"]["text"]


def test_reports_that_contradict_each_other_are_in_the_trace():
    env = small(searchers=2)
    env.step(assign(searcher_0="Bob", searcher_1="Bob"))
    said = {"searcher_0": "The town of Bob is Rome.", "searcher_1": "the town of bob is Oslo."}
    env.step({agent: report(text) for agent, text in said.items()})
    aggregate = env.trace[-1]
    assert aggregate.kind == "aggregate"
    [(first, second)] = aggregate.detail["conflicts"]
    assert (env.trace[first].agent, env.trace[second].agent) == ("searcher_0", "searcher_1")
    assert team.measure(env.trace).conflicts == 1
    assert "contradict" in team.draw_text(env.trace)
    assert find_conflicts([(1, "The town of Bob is Rome."), (2, "The town of Cid is Oslo.")]) == []


def test_the_trace_says_who_did_what_from_what():
    env = small(searchers=2)
    env.step(assign(searcher_0="Ann", searcher_1="Bob"))
    env.step({"searcher_0": search("Ann"), "searcher_1": search("Bob")})
    env.step({"searcher_0": report("Bob"), "searcher_1": report("Rome")})
    env.step(HAND_OVER)
    env.step({"answerer_0": answer("Rome")})
    assert kinds(env) == [
        (0, "leader_0", "spawn"),
        (1, "leader_0", "assign"),
        (1, "searcher_0", "spawn"),
        (1, "searcher_1", "spawn"),
        (2, "searcher_0", "call"),
        (2, "searcher_1", "call"),
        (3, "searcher_0", "report"),
        (3, "searcher_1", "report"),
        (3, "leader_0", "aggregate"),
        (4, "leader_0", "hand_over"),
        (4, "answerer_0", "spawn"),
        (4, "answerer_0", "aggregate"),
        (5, "answerer_0", "answer"),
        (5, "leader_0", "stop"),
    ]
    parents = {event.id: event.parents for event in env.trace}
    assert parents[4] == (2,)
    assert parents[7] == (5,)
    assert parents[8] == (6, 7)
    found = team.measure(env.trace)
    assert found == team.TeamMetrics(
        ticks=5,
        critical_path_ticks=5,
        critical_path_calls=1,
        turns=7,
        calls=2,
        speed_up=1.4,
        parallel_efficiency=1.0,
        messages=5,
        words=4,
        conflicts=0,
        faults=0,
    )


def test_traces_are_written_read_and_refused(tmp_path, write):
    env = small(searchers=2)
    env.step(assign(searcher_0="Ann <b>"))
    path = tmp_path / "trace.jsonl"
    team.write_traces([env.trace, env.trace], path)
    assert [tuple(events) for events in team.read_traces(path)] == [env.trace] * 2
    assert "Ann &lt;b&gt;" in team.draw_html([env.trace])
    good = path.read_text(encoding="utf-8").splitlines()[0]
    for wrong in (
        good.replace("trace/1", "trace/9"),
        good.replace('"spawn"', '"spawned"'),
        good.replace('"tick": 0', '"tick": "0"'),
        good.replace('"parents": []', '"parents": [7]'),
        good.replace('"parents": []', '"parents": 7'),
        good.replace('"episode": 0', '"episode": null'),
        good.replace('"to": []', '"too": []'),
    ):
        assert wrong != good
        bad = write("bad.jsonl", f"{good}\n{wrong}\n".encode())
        with pytest.raises(CorpusError, match="line 2"):
            team.read_traces(bad)


def test_a_policys_own_fault_ends_its_assignment():
    env = small(searchers=2)
    env.step(assign(searcher_0="Ann", searcher_1="Bob"))
    env.step({"searcher_0": ProtocolError("timed_out", "no word"), "searcher_1": search("Bob")})
    assert env.asked() == ("searcher_1",)
    [fault] = [event for event in env.trace if event.kind == "fault"]
    assert (fault.error, fault.text) == ("timed_out", "no word")
