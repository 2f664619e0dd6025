import gymnasium as gym
import pytest
from registered import every_environment

from seekgym.corpora import BM25Retriever, ConfigurationError
from seekgym.corpora.phantom import PhantomWorld
from seekgym.envs import PhantomEnv
from seekgym.envs.wrappers import TextProtocol
from seekgym.leaderboard import certify

PHANTOMS = [row for row in every_environment() if "Phantom" in row.values[0].id]
SMALL = {"people": 200, "questions": 60}


@pytest.mark.parametrize(
    "environment", [row for row in PHANTOMS if row.values[0].id != "seekgym/Phantom-1M-v0"]
)
def test_every_configuration_is_certified(environment):
    for finding in certify(environment.id, tasks=200):
        assert finding.is_met is not False, finding


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "environment", [row for row in PHANTOMS if row.values[0].id != "seekgym/Phantom-1M-v0"]
)
def test_a_thousand_tasks_of_every_configuration_are_certified(environment):
    findings = certify(environment.id, tasks=1_000)
    assert {"proofs", "oracle"} <= {finding.name for finding in findings}
    for finding in findings:
        assert finding.is_met is not False, finding


def test_every_kind_is_certified():
    kinds = ("chain", "attribute", "comparison", "superlative", "count", "yes_no", "unanswerable")
    arguments = {"people": 600, "kinds": kinds, "constraints": (0, 2)}
    findings = certify("seekgym/Phantom-v0", tasks=400, arguments=arguments)
    guessed = [finding.name for finding in findings if finding.name.startswith("closed book")]
    assert guessed == [f"closed book, {kind}" for kind in sorted(kinds)]
    assert [finding for finding in findings if finding.is_met is False] == []


def test_a_wrong_retriever_is_not_certified():
    class Blind:
        name = "blind"

        def search(self, queries, k):
            return [[] for _ in queries]

    with pytest.raises(ConfigurationError, match="at most 0"):
        PhantomEnv(**SMALL, retriever=Blind())


def test_the_call_of_the_documentation_works():
    env = gym.make(
        "seekgym/Phantom-v0",
        people=5_000,
        world_seed=7,
        hops=(1, 6),
        constraints=(0, 2),
        comparisons=True,
        split="train",
    )
    question, info = env.reset(seed=0)
    assert question.endswith("?")
    kinds = {task.kind for task in env.unwrapped.tasks}
    assert kinds == {"chain", "attribute", "comparison"}
    assert info["turns_left"] == 12


def test_options_pick_the_difficulty():
    env = PhantomEnv(**SMALL)
    for hops in range(1, 7):
        env.reset(seed=0, options={"hops": hops})
        assert env.task.hops == hops
    for option in ("split", "world_seed"):
        with pytest.raises(ConfigurationError, match=f"make another one with {option}="):
            env.reset(options={option: "test"})


def test_worlds_of_the_two_splits_share_no_name():
    train, test = PhantomEnv(**SMALL), PhantomEnv(**SMALL, split="test")
    words = [{word for d in env.corpus for word in d.title.split()} for env in (train, test)]
    assert words[0].isdisjoint(words[1])
    assert train.env_hash != test.env_hash


def test_environments_over_one_world_share_it():
    first, second = PhantomEnv(**SMALL), PhantomEnv(**SMALL, max_turns=12, rewards="f1")
    assert first.corpus is second.corpus
    assert first.retriever is second.retriever
    assert PhantomEnv(**SMALL, world_seed=1).corpus is not first.corpus


def test_an_index_on_disk_is_used_again(tmp_path):
    env = PhantomEnv(**SMALL, index_dir=str(tmp_path))
    assert list(tmp_path.glob("*/manifest.json"))
    assert env.tasks.fingerprint == PhantomEnv(**SMALL).tasks.fingerprint


def test_proofs_fit_the_budget_and_the_training_set_up_is_that_of_the_paper():
    env = gym.make("seekgym/PhantomTrain-v0").unwrapped
    assert len(env.corpus) == 1_000
    assert (env.k, env.rules.max_turns, env.rules.on_invalid) == (3, 10, "end")
    assert env.rules.rewards == "f1"
    assert all(task.is_answer_set and len(task.proof) <= 9 for task in env.tasks)
    assert {task.hops for task in env.tasks} == set(range(1, 8))
    assert any(len(task.answers) > 1 for task in env.tasks)
    text = TextProtocol(env, "search-r1")
    text.reset(seed=0)
    assert text.step("I think it is Ann.")[2] is True
    text.reset(seed=0)
    right = ", ".join(reversed(env.task.answers))
    assert text.step(f"<answer>{right}</answer>")[1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"people": 0}, "people must be a whole number from 1"),
        ({"people": 2.5}, "people"),
        ({"world_seed": -1}, "world_seed"),
        ({"split": "dev"}, "split"),
        ({"hops": (3, 1)}, "hops must be"),
        ({"constraints": (0, 9)}, "constraints must be"),
        ({"kinds": ("riddle",)}, "unknown kind"),
        ({"relations": ("uncel",)}, "did you mean 'uncle'"),
        ({"semantics": "fuzzy"}, "semantics"),
        ({"style": "verse"}, "unknown style"),
        ({"questions": 0}, "count must be"),
        ({"questions": 10**6, "people": 20}, "at most"),
        ({"friends": -1.0}, "friends"),
        ({"family": (1,)}, "family must be"),
        ({"k": 0}, "k must be"),
        ({"max_turn": 3}, "did you mean 'max_turns'"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ConfigurationError, match=words):
        PhantomEnv(**{**SMALL, **arguments})


def test_styles_give_other_articles_and_the_same_questions():
    wiki, prose = PhantomEnv(**SMALL), PhantomEnv(**SMALL, style="prose")
    assert wiki.corpus[0].text != prose.corpus[0].text
    assert wiki.corpus[0].links == prose.corpus[0].links
    assert {t.id for t in wiki.tasks} & {t.id for t in prose.tasks}


@pytest.mark.exhaustive
def test_a_million_people_are_certified_through_an_index_on_disk(tmp_path):
    world = PhantomWorld(1_000_000)
    retriever = BM25Retriever(world.corpus, index_dir=tmp_path)
    tasks = world.tasks(100, retriever=retriever)
    assert len(tasks) == 100
