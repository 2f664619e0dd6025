"""What an agent called, turn by turn, whether it sent tool calls or wrote text."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...envs.actions import Parameter, ToolSignature
from ...envs.protocols import get_protocol
from .trajectory import Trajectory, Turn

__all__ = ["TurnCall", "calls_of"]

_REACT_NAME = re.compile(r"^[ \t]*Action[ \t]*\d*:[ \t]*([A-Za-z_]+)[ \t]*\[", re.MULTILINE)


class TurnCall(NamedTuple):
    """The call of one turn.

    Attributes:
        name: The tool.
        arguments: Its arguments; ReAct names none, so there it is ``argument``.
        is_well_formed: Whether the text around it kept to its protocol's form.
    """

    name: str
    arguments: Mapping[str, Any]
    is_well_formed: bool = True


def calls_of(trajectory: Trajectory) -> list[TurnCall | None]:
    """Return the call of each turn; None where nothing was run."""
    protocols = [
        wrapper.get("kwargs", {}).get("protocol")
        for wrapper in trajectory.wrappers
        if str(wrapper.get("entry_point", "")).endswith(":TextProtocol")
    ]
    protocol = protocols[-1] if protocols else None
    return [_call(turn, protocol) for turn in trajectory.turns]


def _call(turn: Turn, protocol: str | None) -> TurnCall | None:
    action = turn.action
    if turn.error is not None:
        return None
    if isinstance(action, str) and protocol is not None:
        name = _REACT_NAME.search(action)  # the one protocol that asks what tools there are
        names = {"answer", name[1].lower()} if name else {"answer"}
        tools = [ToolSignature(each, "", (Parameter("argument", ""),)) for each in sorted(names)]
        action = get_protocol(protocol, tools).decode(action)
    if not isinstance(action, Mapping) or not isinstance(action.get("arguments"), Mapping):
        return None
    return TurnCall(str(action["name"]), action["arguments"], bool(action.get("well_formed", True)))
