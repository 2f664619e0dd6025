"""The table of environments: one row an id. A new environment is one file and one row here."""

from typing import Any, NamedTuple

import gymnasium as gym

__all__ = ["ENVIRONMENTS", "Environment", "register_all"]


class Environment(NamedTuple):
    """One registered environment.

    Attributes:
        id: What ``gym.make`` takes.
        entry_point: Module and class, under ``seekgym.envs``. The same module holds a function
            ``make_vector`` for vectors of it.
        description: One line for lists.
        arguments: What the class is called with.
    """

    id: str
    entry_point: str
    description: str
    arguments: dict[str, Any] = {}  # noqa: RUF012 - never changed


ENVIRONMENTS = (
    Environment("seekgym/QA-v0", "qa:QAEnv", "100 real multi-hop questions over 994 passages"),
)


def register_all() -> None:
    """Register every environment of the table; a second call changes nothing."""
    for environment in ENVIRONMENTS:
        if environment.id in gym.registry:
            continue
        module = environment.entry_point.partition(":")[0]
        gym.register(
            environment.id,
            entry_point=f"seekgym.envs.{environment.entry_point}",
            vector_entry_point=f"seekgym.envs.{module}:make_vector",
            kwargs=dict(environment.arguments),
        )
