"""Who plays: baselines, the oracle, and how an episode is recorded."""

import importlib

from ..corpora.errors import ConfigurationError, raise_unknown
from .base import Agent
from .baselines import ClosedBookAgent, IterativeAgent, RandomAgent, RetrieveThenReadAgent
from .oracle import OracleAgent

__all__ = [
    "AGENTS",
    "Agent",
    "ClosedBookAgent",
    "IterativeAgent",
    "OracleAgent",
    "RandomAgent",
    "RetrieveThenReadAgent",
    "get_agent",
]

AGENTS: dict[str, type[Agent]] = {
    agent.name: agent
    for agent in (
        RandomAgent,
        ClosedBookAgent,
        RetrieveThenReadAgent,
        IterativeAgent,
        OracleAgent,
    )
}


def get_agent(name: str) -> type[Agent]:
    """Return a baseline by name, or the class at ``module:Class``.

    Raises:
        ConfigurationError: There is no such agent, or it is no subclass of ``Agent``.
    """
    if name in AGENTS:
        return AGENTS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise_unknown("agent", name, [*AGENTS, "module:Class"])
    try:
        agent = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"agent {name!r} cannot be imported: {error}") from None
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        raise ConfigurationError(f"agent {name!r} is no subclass of seekgym.agents.Agent")
    return agent
