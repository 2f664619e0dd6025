"""The table of environments: one row an id. A new environment is one file and one row here."""

from typing import Any, NamedTuple

import gymnasium as gym
import pettingzoo  # type: ignore[import-untyped]
from gymnasium.envs.registration import WrapperSpec

__all__ = ["ENVIRONMENTS", "TEAM_CONFIGURATIONS", "Environment", "register_all"]


class Environment(NamedTuple):
    """One registered environment.

    Attributes:
        id: What ``gym.make`` takes.
        entry_point: Module and class, under ``seekgym.envs``. The same module holds a function
            ``make_vector`` for vectors of it.
        description: One line for lists.
        arguments: What the class is called with.
        is_large: Making it takes more than ten seconds: played only when it is asked for.
        golden: What else the class is called with for the golden transcript, where an episode
            depends on the interpreter.
        is_menu: It is shown as a menu of choices in numbers: Features(Menu(...)). A vector of it
            is Gymnasium's.
    """

    id: str
    entry_point: str
    description: str
    arguments: dict[str, Any] = {}  # noqa: RUF012 - never changed
    is_large: bool = False
    golden: dict[str, Any] = {}  # noqa: RUF012 - never changed
    is_menu: bool = False


ENVIRONMENTS = (
    Environment("seekgym/QA-v0", "qa:QAEnv", "100 real multi-hop questions over 994 passages"),
    Environment("seekgym/Phantom-v0", "phantom:PhantomEnv", "an invented universe of 5,000 people"),
    Environment(
        "seekgym/Phantom-50-v0",
        "phantom:PhantomEnv",
        "an invented universe of 50 people",
        {"people": 50},
    ),
    Environment(
        "seekgym/PhantomShort-v0",
        "phantom:PhantomEnv",
        "50 people, stated relations, 1 and 2 hops, searches that show one sentence",
        {
            "people": 50,
            "hops": (1, 2),
            "relations": (
                "mother",
                "father",
                "wife",
                "husband",
                "sister",
                "brother",
                "daughter",
                "son",
                "friend",
            ),
            "hit_sentences": 1,
            "k": 1,
            "on_invalid": "end",
        },
    ),
    Environment(
        "seekgym/Phantom-5k-v0",
        "phantom:PhantomEnv",
        "5,000 people, with constraints and comparisons",
        {"people": 5_000, "constraints": (0, 2), "comparisons": True},
    ),
    Environment(
        "seekgym/Phantom-100k-v0",
        "phantom:PhantomEnv",
        "100,000 people",
        {"people": 100_000},
        is_large=True,
    ),
    Environment(
        "seekgym/Phantom-1M-v0",
        "phantom:PhantomEnv",
        "a million people",
        {"people": 1_000_000},
        is_large=True,
    ),
    Environment(
        "seekgym/PhantomEasy-v0",
        "phantom:PhantomEnv",
        "1,000 people, questions of 1 and 2 hops",
        {"people": 1_000, "hops": (1, 2)},
    ),
    Environment(
        "seekgym/PhantomMedium-v0",
        "phantom:PhantomEnv",
        "1,000 people, questions of 3 and 4 hops",
        {"people": 1_000, "hops": (3, 4)},
    ),
    Environment(
        "seekgym/PhantomHard-v0",
        "phantom:PhantomEnv",
        "1,000 people, questions of 5 to 7 hops",
        {"people": 1_000, "hops": (5, 7)},
    ),
    Environment(
        "seekgym/PhantomTrain-v0",
        "phantom:PhantomEnv",
        "the training set-up of PhantomEnvironments (arXiv:2609.40221)",
        {
            "people": 1_000,
            "family": (10, 5, 5),
            "relations": "easy",
            "hops": (1, 7),
            "semantics": "set",
            "max_turns": 10,
            "rewards": "f1",
            "on_invalid": "end",
        },
    ),
    Environment(
        "seekgym/KnowledgeGraph-v0",
        "knowledge_graph:KnowledgeGraphEnv",
        "an invented encyclopedia of 3,600 entities",
    ),
    Environment(
        "seekgym/KnowledgeGraphEasy-v0",
        "knowledge_graph:KnowledgeGraphEnv",
        "600 entities: single facts and chains of two",
        {"entities": 600, "kinds": ("simple", "chain"), "hops": (2, 2)},
    ),
    Environment(
        "seekgym/KnowledgeGraphMedium-v0",
        "knowledge_graph:KnowledgeGraphEnv",
        "1,200 entities: chains, conjunctions, comparisons, dates and lists",
        {
            "entities": 1_200,
            "kinds": ("chain", "conjunction", "comparison", "date", "list"),
            "hops": (2, 3),
            "constraints": (2, 2),
        },
    ),
    Environment(
        "seekgym/KnowledgeGraphHard-v0",
        "knowledge_graph:KnowledgeGraphEnv",
        "1,200 entities: every kind, half of all mentions described",
        {
            "entities": 1_200,
            "kinds": (
                "chain",
                "conjunction",
                "parallel",
                "comparison",
                "count",
                "superlative",
                "date",
                "list",
                "unanswerable",
            ),
            "hops": (3, 4),
            "obfuscation": 0.5,
        },
    ),
    Environment(
        "seekgym/KnowledgeGraphLong-v0",
        "knowledge_graph:KnowledgeGraphEnv",
        "3,600 entities: chains of five and six, conjunctions of four, mentions described",
        {
            "kinds": ("chain", "conjunction"),
            "hops": (5, 6),
            "constraints": (3, 4),
            "obfuscation": 0.5,
            "max_turns": 40,
        },
    ),
    Environment(
        "seekgym/TeamLeader-v0",
        "team.leader:TeamLeaderEnv",
        "lead three scripted searchers through a universe of 1,000 people",
    ),
    Environment(
        "seekgym/Grep-v0",
        "grep:GrepEnv",
        "shell commands over raw text, by default that of seekgym/QA-v0",
    ),
    Environment(
        "seekgym/Web-v0",
        "web:WebEnv",
        "pages to search, open and cite, by default the documentation of Python's library",
        golden={"site": "phantom:people=50"},
    ),
    Environment(
        "seekgym/QueryRefinement-v0",
        "query_refinement:QueryRefinementEnv",
        "refine a query by the productions of a grammar, for numeric learners",
    ),
    Environment(
        "seekgym/PhantomMenu-v0",
        "phantom:PhantomEnv",
        "1 and 2 hops among 1,000 people, as a menu of choices in numbers",
        {"people": 1_000, "hops": (1, 2), "relations": "easy", "max_turns": 8},
        is_menu=True,
    ),
    Environment(
        "seekgym/KnowledgeGraphMenu-v0",
        "knowledge_graph:KnowledgeGraphEnv",
        "KnowledgeGraphEasy as a menu of choices in numbers",
        {"entities": 600, "kinds": ("simple", "chain"), "hops": (2, 2), "max_turns": 12},
        is_menu=True,
    ),
    Environment(
        "seekgym/QAMenu-v0",
        "qa:QAEnv",
        "QA as a menu of choices in numbers",
        is_menu=True,
    ),
)

_MENU = (
    WrapperSpec("Menu", "seekgym.envs.wrappers.menu:Menu", {"size": 24}),
    WrapperSpec("Features", "seekgym.envs.wrappers.features:Features", {}),
)

# Teams of several learning agents, for pettingzoo.make: id and arguments.
TEAM_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "seekgym/Team-v0": {},
    "seekgym/TeamGraph-v0": {
        "world": "knowledge:entities=600,kinds=('parallel','comparison','conjunction')",
        "rounds": 4,
        "search_turns": 7,
    },
    "seekgym/TeamQA-v0": {"world": "qa:hotpotqa-100"},
    "seekgym/TeamPair-v0": {"searchers": 2, "answerer": False},
    "seekgym/TeamMenu-v0": {
        "world": "phantom:people=200,hops=(1, 2)",
        "searchers": 2,
        "rounds": 2,
    },
}


def register_all() -> None:
    """Register every environment of the table; a second call changes nothing."""
    for environment in ENVIRONMENTS:
        if environment.id in gym.registry:
            continue
        module = environment.entry_point.partition(":")[0]
        gym.register(
            environment.id,
            entry_point=f"seekgym.envs.{environment.entry_point}",
            vector_entry_point=None
            if environment.is_menu
            else f"seekgym.envs.{module}:make_vector",
            kwargs=dict(environment.arguments),
            additional_wrappers=_MENU if environment.is_menu else (),
        )
    _register_teams()


def _register_teams() -> None:
    """Register the teams with PettingZoo, where it has a registry (1.27 and newer)."""
    register = getattr(pettingzoo, "register", None)
    if register is None:
        return
    for team_id, arguments in TEAM_CONFIGURATIONS.items():
        if team_id in pettingzoo.parallel_registry:
            continue
        prefix = "menu_" if "Menu" in team_id else ""
        for kind, maker in (("parallel", "parallel_env"), ("aec", "env")):
            entry_point = f"seekgym.envs.team:{prefix}{maker}"
            register(kind, team_id, entry_point=entry_point, kwargs=dict(arguments))
