import gymnasium as gym
import pytest
from registered import every_environment

from seekgym.agents import IterativeAgent, OracleAgent
from seekgym.agents.rollouts import play
from seekgym.corpora import ConfigurationError
from seekgym.corpora.knowledge.terms import KINDS
from seekgym.envs import KnowledgeGraphEnv
from seekgym.leaderboard import certify

LADDER = [row for row in every_environment() if "KnowledgeGraph" in row.values[0].id]
SMALL = {"entities": 300, "questions": 60}


def search(query):
    return {"name": "search", "arguments": {"query": query}}


def access(url, **arguments):
    return {"name": "access", "arguments": {"url": url, **arguments}}


@pytest.fixture(scope="module")
def env():
    return KnowledgeGraphEnv(**SMALL)


@pytest.mark.parametrize("environment", LADDER)
def test_every_configuration_is_certified(environment):
    for finding in certify(environment.id, tasks=150):
        assert finding.is_met is not False, finding


@pytest.mark.exhaustive
@pytest.mark.parametrize("environment", LADDER)
def test_a_thousand_tasks_of_every_configuration_are_certified(environment):
    for finding in certify(environment.id, tasks=1_000):
        assert finding.is_met is not False, finding


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
def test_every_kind_is_certified_over_ten_seeds(seed):
    arguments = {
        "kinds": KINDS,
        "hops": (2, 6),
        "constraints": (2, 4),
        "obfuscation": 0.5,
        "coverage": ("both", "either")[seed % 2],
        "world_seed": seed,
        "max_turns": 60,
    }
    for finding in certify("seekgym/KnowledgeGraph-v0", tasks=200, arguments=arguments):
        assert finding.is_met is not False, finding


def test_the_call_of_the_documentation_works():
    env = gym.make(
        "seekgym/KnowledgeGraph-v0",
        entities=3_600,
        world_seed=1,
        kinds=("chain", "conjunction"),
        hops=(2, 4),
        obfuscation=0.5,
    )
    env.reset(seed=0)
    assert {task.kind for task in env.unwrapped.tasks} == {"chain", "conjunction"}


def test_searching_shows_snippets_and_opening_shows_the_page(env):
    env.reset(seed=0)
    document = env.corpus[3]
    observation, *_, info = env.step(search(document.title))
    assert info["documents"] == ()
    first = observation.split("\n\n")[0].split("\n")
    assert first[:2] == [f"1. {document.title}", document.url]
    assert len(first[2]) < 260
    observation, *_, info = env.step(access(document.url))
    assert info["documents"] == (document.id,)
    assert observation == f"{document.title}\n{document.url}\n{document.text}"
    for call, code in (
        (access("https://nowhere.example"), "unknown_url"),
        (access(document.url, page=2), "unknown_page"),
        (search("  "), "empty_query"),
    ):
        assert env.step(call)[4]["error"] == code
    assert "No results" in env.step(search("zzzqqq"))[0]


def test_a_long_page_is_opened_in_parts():
    env = KnowledgeGraphEnv(**SMALL, k=1, max_observation_chars=1_000)
    env.reset(seed=0)
    document = max(env.corpus, key=lambda document: len(document.text))
    text = ""
    for part in range(1, -(-len(document.text) // 400) + 1):
        text += env.step(access(document.url, page=part))[0].split("\n", 2)[2]
    assert text == document.text


class Blinded:
    """A retriever that never brings what a task needs."""

    name = "blinded"

    def __init__(self, env):
        self.inner, self.env = env.retriever, env

    def search(self, queries, k):
        hidden = set(self.env.task.evidence)
        rankings = self.inner.search(queries, k + len(hidden))
        return [[hit for hit in hits if hit.document_id not in hidden][:k] for hits in rankings]


def test_without_the_right_pages_the_oracle_falls_to_the_floor():
    env = KnowledgeGraphEnv(**SMALL)
    full = [play(env, OracleAgent(env), seed=seed).total_reward for seed in range(20)]
    env.retriever = Blinded(env)
    blind = [play(env, OracleAgent(env), seed=seed).total_reward for seed in range(20)]
    assert (sum(full), sum(blind)) == (20, 0)


def test_baselines_play_it():
    env = KnowledgeGraphEnv(**SMALL)
    trajectory = play(env, IterativeAgent(env), seed=0)
    assert trajectory.outcome["invalid_calls"] == 0


def test_options_pick_the_difficulty(env):
    env.reset(seed=0, options={"kind": "conjunction"})
    assert env.task.kind == "conjunction"
    with pytest.raises(ConfigurationError, match="make another one with world_seed="):
        env.reset(options={"world_seed": 2})


def test_worlds_of_the_two_splits_share_no_name(env):
    other = KnowledgeGraphEnv(**SMALL, split="test")
    titles = [{document.title for document in each.corpus} for each in (env, other)]
    assert titles[0].isdisjoint(titles[1])


def test_a_real_graph_comes_through_the_same_door(tmp_path):
    people = [f"p{i}" for i in range(12)]
    (tmp_path / "labels.tsv").write_text(
        "".join(f"{p}\tPerson {p}\n" for p in people), encoding="utf-8"
    )
    (tmp_path / "texts.tsv").write_text(
        "".join(f"{p}\tAbout {p}.\n" for p in people), encoding="utf-8"
    )
    (tmp_path / "triples.tsv").write_text(
        "".join(f"p{i}\tteacher\tp{(i * 5 + 1) % 12}\n" for i in range(12)), encoding="utf-8"
    )
    env = KnowledgeGraphEnv(
        source=str(tmp_path), kinds=("simple",), questions=5, k=3, coverage="subject"
    )
    assert play(env, OracleAgent(env), seed=0).total_reward == 1.0
    assert {f.name: f.is_met for f in env.findings()}["graph solver"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"entities": 3}, "entities"),
        ({"world_seed": -1}, "world_seed"),
        ({"split": "dev"}, "split"),
        ({"kinds": ("riddle",)}, "unknown kind"),
        ({"kinds": ()}, "kinds must be"),
        ({"hops": (4, 2)}, "hops must be"),
        ({"hops": (2, 7)}, "hops must be"),
        ({"constraints": (1, 2)}, "constraints must be"),
        ({"obfuscation": 1.5}, "obfuscation must be"),
        ({"coverage": "none"}, "coverage"),
        ({"noise": 2.0}, "noise"),
        ({"questions": 0}, "questions must be"),
        ({"k": 0}, "k must be"),
        ({"k": 20}, "max_observation_chars"),
        ({"max_turns": 3}, "max_turns must be at least"),
        ({"schema": "nowhere.json"}, "nowhere"),
        ({"source": "nowhere"}, "nowhere"),
        ({"max_turn": 3}, "did you mean 'max_turns'"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises((ConfigurationError, ValueError), match=words):
        KnowledgeGraphEnv(**{**SMALL, **arguments})
