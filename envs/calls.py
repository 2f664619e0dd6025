"""Read what an agent sent: a call of one of its tools, or what is wrong with it."""

from collections.abc import Mapping
from typing import Any

from ..corpora.text import replace_surrogates
from .actions import ProtocolError, check_arguments, cut_off
from .episode import Pending
from .tools import Tool

__all__ = ["read_call"]

_MAX_ARGUMENT_CHARS = 100_000
_MAX_NOTE_CHARS = 200


def read_call(
    action: object, tools: Mapping[str, Tool], *, last_turn_tool: str | None = None
) -> Pending:
    """Return the turn that an action begins; whatever is wrong with it is named there.

    Args:
        action: Anything at all: an agent may send any object.
        tools: What may be called, by name.
        last_turn_tool: If given, this is a last turn, which takes nothing but this tool.
    """
    try:
        return _read(action, tools, last_turn_tool)
    except Exception as fault:  # looking at an object may fail
        reason = f"The action could not be read ({type(fault).__name__})."
        return Pending(None, {}, ProtocolError("malformed", reason))


def _read(action: object, tools: Mapping[str, Tool], last_turn_tool: str | None) -> Pending:
    error = action if isinstance(action, ProtocolError) else _fault(action, tools, last_turn_tool)
    if error is not None or not isinstance(action, Mapping):
        return Pending(None, {}, error)
    tool = tools[action["name"]]
    arguments = {name: _clean(value) for name, value in action["arguments"].items()}
    return Pending(
        tool,
        arguments,
        queries=tool.queries(arguments),
        is_well_formed=bool(action.get("well_formed", True)),
        note=replace_surrogates(str(action.get("note", "")))[:_MAX_NOTE_CHARS],
    )


def _fault(
    action: object, tools: Mapping[str, Tool], last_turn_tool: str | None
) -> ProtocolError | None:
    """Return what is wrong with an action, or None."""
    if not isinstance(action, Mapping):
        return ProtocolError(
            "malformed",
            "An action is an object with a 'name' and 'arguments'; "
            f"got {type(action).__name__}. The tools: {', '.join(tools)}.",
        )
    if action.get("is_cut") is True:
        return cut_off()
    name, arguments = action.get("name"), action.get("arguments")
    if not isinstance(name, str) or name not in tools:
        shown = replace_surrogates(repr(name)[:60])
        reason = f"There is no tool {shown}. The tools: {', '.join(tools)}."
        return ProtocolError("unknown_tool", reason)
    signature = tools[name].signature
    if not isinstance(arguments, Mapping):
        reason = f"{name} needs its arguments as an object: {signature.usage}."
        return ProtocolError("bad_arguments", reason)
    fault = check_arguments(signature, arguments)
    if fault is not None:
        return ProtocolError("bad_arguments", f"{fault}.")
    if last_turn_tool is not None and name != last_turn_tool:
        reason = f"The last turn takes nothing but {last_turn_tool}, not {name}."
        return ProtocolError("last_turn", reason)
    return None


def _clean(value: Any) -> Any:
    return replace_surrogates(value[:_MAX_ARGUMENT_CHARS]) if isinstance(value, str) else value
