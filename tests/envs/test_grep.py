import json
import pickle

import gymnasium as gym
import pytest

from seekgym.agents import OracleAgent
from seekgym.agents.rollouts import play, ungrounded
from seekgym.corpora import ConfigurationError, Corpus, Document, Task, TaskSet
from seekgym.corpora.shell import Limits, parse
from seekgym.envs import EvidenceRecall, GrepEnv, KnowledgeGraphEnv, PhantomEnv, QAEnv
from seekgym.envs.shell import preview

WORLDS = [
    "phantom:people=50",
    "phantom:people=5000,constraints=(0,2),comparisons=True",
    "knowledge:entities=600",
    "knowledge:entities=1200,kinds=('list','superlative','count'),obfuscation=0.5",
]


def shell(command):
    return {"name": "shell", "arguments": {"command": command}}


def answer(text):
    return {"name": "answer", "arguments": {"text": text}}


def small(*texts, **arguments):
    documents = [Document(f"d{i}", f"T{i}", text) for i, text in enumerate(texts)]
    tasks = TaskSet([Task("t", "Who?", ("Paris France",), ("d0",))])
    return GrepEnv(Corpus.from_documents(documents), tasks, **arguments)


def step(env, command):
    env.reset(seed=0)
    observation, _, _, _, info = env.step(shell(command))
    return json.loads(observation.splitlines()[0]), info


def test_the_observation_is_an_object_of_six_fields():
    seen, info = step(small("Ann was born in 1943."), "rg -i 'born in' corpus.jsonl | head -n 5")
    assert seen == {
        "command": "rg -i 'born in' corpus.jsonl | head -n 5",
        "stdout": '{"id": "d0", "title": "T0", "text": "Ann was born in 1943."}\n',
        "stderr": "",
        "exit_code": 0,
        "timed_out": False,
        "truncated": False,
    }
    assert info["documents"] == ("d0",)
    assert info["error"] is None


def test_the_observation_can_be_plain_text():
    env = small("Ann", observation="text")
    env.reset()
    assert env.step(shell("grep -c Ann corpus.jsonl missing"))[0] == (
        "corpus.jsonl:1\ngrep: missing: No such file or directory\n[exit code 2]"
    )


def test_a_refused_command_costs_a_turn_and_says_why():
    seen, info = step(small("x"), "rg x corpus.jsonl; id")
    assert info["error"] == "operator"
    assert (seen["exit_code"], seen["stdout"]) == (-2, "")
    assert seen["stderr"].startswith("';' is not allowed")
    assert info["turns_left"] == 5
    assert step(small("x"), "curl localhost")[1]["error"] == "program"
    assert step(small("x"), "rg --pre=id x")[1]["error"] == "option"
    assert step(small("x"), "cat ../x")[1]["error"] == "path"


def test_the_budget_is_that_of_grepseek():
    env = gym.make("seekgym/Grep-v0").unwrapped
    assert env.rules.max_turns == 6
    assert env.rules.max_observation_chars == 4 * 2_048
    assert [term.name for term in env.rules.terms] == ["format_f1"]
    env.reset()
    assert env.step(shell("rg " + "x" * 1_997))[4]["error"] is None
    assert env.step(shell("rg " + "x" * 1_998))[4]["error"] == "too_long"


def test_the_reward_is_format_times_f1():
    env = small("x")
    env.reset()
    assert env.step(answer("Paris"))[1] == pytest.approx(2 / 3)
    env.reset()
    env.step(shell("rg x | ls *"))
    assert env.step(answer("Paris"))[1] == 0.0


def test_the_tasks_are_those_of_the_source():
    assert GrepEnv().tasks.fingerprint == QAEnv().tasks.fingerprint
    same = GrepEnv("phantom:people=50,world_seed=3"), PhantomEnv(people=50, world_seed=3)
    assert same[0].tasks.fingerprint == same[1].tasks.fingerprint
    assert same[0].corpus is same[1].corpus
    same = GrepEnv("knowledge:entities=600"), KnowledgeGraphEnv(entities=600)
    assert same[0].tasks.fingerprint == same[1].tasks.fingerprint


def test_files_and_folders_are_corpora(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("Ann lives in Rome.\r\n")
    (folder / "b.txt").write_text("Bob")
    (folder / "tasks.jsonl").write_text(
        '{"id": "1", "question": "Where?", "answers": ["GOLD-Rome"], "evidence": ["a.txt"]}\n'
    )
    env = GrepEnv(folder)
    seen, info = step(env, "cat corpus.jsonl")
    assert [json.loads(line)["id"] for line in seen["stdout"].splitlines()] == ["a.txt", "b.txt"]
    assert info["documents"] == ("a.txt", "b.txt")
    assert step(env, "ls -a -R")[0]["stdout"].split() == [".:", ".", "..", "corpus.jsonl"]
    assert step(env, "rg -uuu GOLD")[0]["stdout"] == ""
    lines = "".join(json.dumps({"id": f"x{i}", "text": f"text {i}"}) + "\n" for i in range(3))
    (tmp_path / "my.jsonl").write_text(lines)
    tasks = TaskSet([Task("t", "Who?", ("x",), ("x1",))])
    env = GrepEnv(tmp_path / "my.jsonl", tasks)
    assert step(env, "grep -c text corpus.jsonl")[0]["stdout"] == "3\n"


def test_a_long_output_is_cut_to_the_budget_and_says_how_much_is_left_out():
    for form in ("json", "text"):
        env = small(*(f'number {i} \\ " of many' for i in range(2_000)), observation=form)
        env.reset()
        observation, _, _, _, info = env.step(shell("cat corpus.jsonl"))
        assert len(observation) <= env.rules.max_observation_chars
        assert len(observation) > env.rules.max_observation_chars - 700
        assert "characters of output left out]" in observation
        assert 50 < len(info["documents"]) < 200


def test_the_last_line_is_not_lost_when_budgets_are_small():
    env = small("word " * 400, max_observation_chars=1_000)
    seen, info = step(env, "cat corpus.jsonl")
    assert seen["truncated"]
    assert "word word" in seen["stdout"]
    assert info["documents"] == ("d0",)


def test_a_time_out_keeps_what_was_written_and_is_no_failure():
    env = small("x", limits=Limits(wall_s=3.0))
    seen, info = step(env, "awk 'BEGIN{print \"early\"; fflush(); while(1);}'")
    assert (seen["stdout"], seen["timed_out"], seen["exit_code"]) == ("early\n", True, 124)
    assert info["failure"] is None


def test_a_preview_keeps_the_head_of_the_line_and_the_match():
    line = json.dumps({"id": "d1", "title": "T", "text": "x " * 2_000 + "needle" + " y" * 2_000})
    shown = preview(line, ["needle"], 300)
    assert shown.startswith('{"id": "d1", "title": "T", "text": " … x x')
    assert "needle" in shown
    assert shown.endswith(f"… [line cut, {len(line)} characters]")
    assert len(shown) <= 300
    assert preview("short", ["needle"], 300) == "short"
    assert preview("x" * 400, ["none"], 100).startswith("xxx")


def test_evidence_recall_is_paid_for_what_was_shown():
    env = small("The capital of France is Paris, as everybody knows well.", "b",
                rewards=[EvidenceRecall()])  # fmt: skip
    env.reset()
    assert env.step(shell('grep -o \'"id": "d0"\' corpus.jsonl'))[1] == 0.0
    assert (
        env.step(shell("rg -o 'capital of France is Paris, as everybody knows' corpus.jsonl"))[1]
        == 1.0
    )


@pytest.mark.parametrize("world", WORLDS)
def test_the_oracle_plays_every_proof_with_grounded_commands(world):
    env = gym.make("seekgym/Grep-v0", corpus=world)
    assert all([is_grounded(env, task) for task in env.unwrapped.tasks[::20]])


@pytest.mark.exhaustive
@pytest.mark.parametrize("world", [*WORLDS, "knowledge:", "hotpotqa-100"])
def test_the_oracle_plays_every_task(world):
    env = gym.make("seekgym/Grep-v0", corpus=world)
    grounded = [is_grounded(env, task) for task in env.unwrapped.tasks]
    # A phrase of a query that begins with a capital, "Out of", may not have been seen before.
    assert sum(grounded) >= 0.99 * len(grounded)


def is_grounded(env, task):
    """Check that the oracle is right, and tell whether its commands use only what was seen."""
    trajectory = play(env, OracleAgent(env), seed=0, options={"task": task.id})
    assert trajectory.outcome["exact_match"] == 1.0, task
    assert trajectory.outcome["evidence_recall"] in (1.0, None), task
    assert trajectory.total_reward == 1.0, task
    return not task.proof or ungrounded(trajectory) == []


def test_an_action_that_uses_what_was_not_seen_is_found():
    env = gym.make("seekgym/Grep-v0", corpus="phantom:people=50")

    class Clairvoyant(OracleAgent):
        def reset(self, observation, info):
            super().reset(observation, info)
            self._steps.rotate(1)

    task = next(task for task in env.unwrapped.tasks if len(task.proof) > 2)
    trajectory = play(env, Clairvoyant(env), seed=0, options={"task": task.id})
    assert ungrounded(trajectory) == task.proof[-1].query.lower().split()


def test_an_episode_goes_on_in_a_pickled_copy():
    env = GrepEnv()
    env.reset(seed=1)
    env.step(shell("head -n 1 corpus.jsonl"))
    other = pickle.loads(pickle.dumps(env))
    call = shell("rg -n born corpus.jsonl | tail -n 2")
    assert other.step(call) == env.step(call)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"corpus": "phantom:people"}, "after 'phantom:' come arguments"),
        ({"corpus": "phantom:people=__import__('os')"}, "come arguments"),
        ({"corpus": "phantom:poeple=5"}, "poeple"),
        ({"corpus": "phantom:people=0"}, "people must be"),
        ({"corpus": "phantom:people=50", "tasks": "x"}, "leave tasks out"),
        ({"corpus": "no such corpus"}, "no such file"),
        ({"observation": "yaml"}, "must be 'json' or 'text'"),
        ({"max_line_chars": 5}, "at least 100"),
        ({"corpus": Corpus.from_documents([Document("a", "", "b")])}, "comes without tasks"),
    ],
)
def test_arguments_are_checked(arguments, words):
    with pytest.raises((ConfigurationError, ValueError), match=words):
        GrepEnv(**arguments)


def test_a_world_stays_the_same():
    env = GrepEnv("phantom:people=50")
    with pytest.raises(ConfigurationError, match="make another one"):
        env.reset(options={"world_seed": 1})


def test_a_large_corpus_is_searched_over_an_index():
    env = gym.make("seekgym/Grep-v0", corpus="phantom:people=6000").unwrapped
    env.reset(seed=0)
    name = env.corpus[2_000].title
    command = {"name": "shell", "arguments": {"command": f"grep -nF '{name}' corpus.jsonl"}}
    observation, *_ = env.step(command)
    engine = env.source._runner
    assert engine.served
    assert f"{2_001}:" in observation
    plain = engine.runner.run(parse(command["arguments"]["command"]))
    assert engine.run(parse(command["arguments"]["command"])) == plain
