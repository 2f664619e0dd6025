"""What an agent may send: a tool call, or a text that was no tool call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from ..corpora.text import replace_surrogates

__all__ = [
    "Action",
    "CutText",
    "Parameter",
    "ProtocolError",
    "ToolCall",
    "ToolSignature",
    "check_arguments",
    "cut_off",
]

_MAX_INTEGER = 1_000_000_000
_RESERVED = frozenset(("reset", "step", "state", "close", "render", "verify"))


class ToolCall(TypedDict):
    """An action: which tool, with which arguments.

    ``well_formed`` and ``note`` are set by text protocols: False says that the text around the
    call broke the protocol's form, and the note is told to the agent with the result. A call
    without them is well formed.
    """

    name: str
    arguments: dict[str, Any]
    well_formed: NotRequired[bool]
    note: NotRequired[str]


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """A text that holds no tool call: an invalid move, with the reason in words.

    Attributes:
        code: A stable name of the fault, for ``info["error"]``.
        reason: One sentence that says what was wrong and what would be right.
    """

    code: str
    reason: str


class CutText(TypedDict):
    """What its writer was stopped in, for example by a limit on tokens: an invalid move."""

    text: str
    is_cut: Literal[True]


Action = ToolCall | ProtocolError | CutText


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool: flat and scalar, since some trainers drop anything nested.

    Attributes:
        name: The argument's name.
        description: What it means, for the agent.
        type: Its JSON type.
        is_required: Whether a call without it is wrong.
        examples: Plausible values, for sampling.
    """

    name: str
    description: str
    type: Literal["string", "integer"] = "string"
    is_required: bool = True
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """What a call of one tool looks like.

    Raises:
        ValueError: The name is one that environments or trainers use themselves.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        """Refuse the names that would shadow an environment's own methods."""
        if self.name in _RESERVED:
            raise ValueError(f"a tool may not be called {self.name!r}; reserved: {_RESERVED}")

    @property
    def usage(self) -> str:
        """How the tool is called, in one line."""
        names = (p.name if p.is_required else f"{p.name}=" for p in self.parameters)
        return f"{self.name}({', '.join(names)})"


def cut_off() -> ProtocolError:
    """Return what is wrong with a text whose writer was stopped before its end."""
    return ProtocolError(
        "cut_off",
        "The reply was cut off before it was finished, so nothing was run. Write less.",
    )


def check_arguments(signature: ToolSignature, arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the arguments of a call, in a sentence, or None.

    Example:
        >>> search = ToolSignature("search", "Search.", (Parameter("query", "What for."),))
        >>> check_arguments(search, {"query": 3})
        "search needs 'query' to be a string, got int: search(query)"
    """
    known = {parameter.name for parameter in signature.parameters}
    for name in arguments:
        if name not in known:
            shown = replace_surrogates(repr(name)[:40])
            return f"{signature.name} has no argument {shown}: {signature.usage}"
    for parameter in signature.parameters:
        if parameter.name not in arguments:
            if parameter.is_required:
                return f"{signature.name} needs {parameter.name!r}: {signature.usage}"
            continue
        value = arguments[parameter.name]
        if type(value) is int and abs(value) > _MAX_INTEGER:
            return f"{signature.name} needs a smaller {parameter.name!r}: {signature.usage}"
        wanted = str if parameter.type == "string" else int
        if not isinstance(value, wanted) or isinstance(value, bool):
            return (
                f"{signature.name} needs {parameter.name!r} to be a {parameter.type}, "
                f"got {type(value).__name__}: {signature.usage}"
            )
    return None
