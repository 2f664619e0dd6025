"""Who plays: baselines, the oracle, and how an episode is recorded."""

import importlib
import inspect

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
    except Exception as error:  # importing runs the user's code
        fault = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"agent {name!r} cannot be imported ({fault})") from error
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        raise ConfigurationError(f"agent {name!r} is no subclass of seekgym.agents.Agent")
    if inspect.isabstract(agent) or not isinstance(getattr(agent, "name", None), str):
        raise ConfigurationError(f"agent {name!r} needs a name, reset() and act()")
    return agent
