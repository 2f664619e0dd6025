"""A leader, searchers and an answerer as PettingZoo environments.

Example:
    >>> from seekgym.envs import team
    >>> env = team.parallel_env(world="qa:hotpotqa-100", searchers=2)
    >>> observations, infos = env.reset(seed=0)
    >>> [agent for agent in env.agents if infos[agent]["is_asked"]]
    ['leader_0']
"""

from typing import Unpack

from .aec import TeamAECEnv
from .menus import TeamMenuEnv
from .parallel import TeamParallelEnv
from .policies import RolePolicy
from .rewards import (
    LOCAL_TERMS,
    Duplication,
    LocalTerm,
    NewEvidence,
    ReportFaithfulness,
    SpeedUp,
    SplitCorrectness,
    TeamAct,
    WordsSent,
)
from .rules import TeamOptions, TeamRules
from .source import World
from .timeline import draw_html, draw_text
from .trace import Event, TeamMetrics, measure, read_traces, write_traces

__all__ = [
    "LOCAL_TERMS",
    "Duplication",
    "Event",
    "LocalTerm",
    "NewEvidence",
    "ReportFaithfulness",
    "RolePolicy",
    "SpeedUp",
    "SplitCorrectness",
    "TeamAECEnv",
    "TeamAct",
    "TeamMenuEnv",
    "TeamMetrics",
    "TeamParallelEnv",
    "TeamRules",
    "WordsSent",
    "draw_html",
    "draw_text",
    "env",
    "measure",
    "menu_env",
    "menu_parallel_env",
    "parallel_env",
    "read_traces",
    "write_traces",
]


def parallel_env(
    world: World = "phantom:people=1000",
    *,
    render_mode: str | None = None,
    **rules: Unpack[TeamOptions],
) -> TeamParallelEnv:
    """Return a team in which all who are asked act at once; see ``TeamParallelEnv``."""
    return TeamParallelEnv(world, render_mode=render_mode, **rules)


def menu_parallel_env(
    world: World = "phantom:people=1000",
    *,
    render_mode: str | None = None,
    **rules: Unpack[TeamOptions],
) -> TeamMenuEnv:
    """Return a team that chooses from menus; see ``TeamMenuEnv``."""
    return TeamMenuEnv(world, render_mode=render_mode, **rules)


def menu_env(
    world: World = "phantom:people=1000",
    *,
    render_mode: str | None = None,
    **rules: Unpack[TeamOptions],
) -> TeamAECEnv:
    """Return a team that chooses from menus as one agent after the other."""
    return TeamAECEnv(menu_parallel_env(world, render_mode=render_mode, **rules))


def env(
    world: World = "phantom:people=1000",
    *,
    render_mode: str | None = None,
    **rules: Unpack[TeamOptions],
) -> TeamAECEnv:
    """Return the same team as one agent after the other; see ``TeamAECEnv``."""
    return TeamAECEnv(parallel_env(world, render_mode=render_mode, **rules))
