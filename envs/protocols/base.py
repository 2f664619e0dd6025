"""What every text protocol is: how a policy that writes text speaks to an environment."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...corpora.errors import ConfigurationError
from ..actions import Action, ToolCall, ToolSignature

__all__ = ["Blank", "Form", "Kind", "Protocol", "make_call", "neutralize"]

Kind = Literal["question", "result", "notice"]

# What could pass for a protocol's tag or a model's control token inside a document's text.
_LOOKALIKE = re.compile(
    r"<(?=\|"
    r"|\s{0,8}/?\s{0,8}(?:think|search|answer|information|tools?|tool_call|tool_response)\b"
    r"|/?(?:s|bos|eos|pad|unk|mask|unused\d+|start_of_turn|end_of_turn|tool_calls)>"
    r"|/?function\b|<SYS>>|</SYS>>|｜)"
    r"|\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])"
    r"|^(?=[ \t]{0,8}(?:Thought|Action|Observation)[ \t]{0,8}\d{0,4}:)",
    re.IGNORECASE | re.MULTILINE,
)
_HARMLESS = {"<": "‹", "[": "(", "": "| "}
_CONTROL_TOKENS = re.compile(r"<\|[^|<>]{1,40}\|>|</s>|<end_of_turn>")
_IGNORED = "Only the first action was run; the text after it was ignored."


@dataclass(frozen=True, slots=True)
class Blank:
    """A part of a call that its writer fills in.

    Attributes:
        end: What closes it; begins with one of ``forbidden``.
        forbidden: Characters that it may not hold.
        is_number: Whether it takes digits alone.
    """

    end: str
    forbidden: str
    is_number: bool = False


Form = tuple[str | Blank, ...]  # a text, a blank, and so on by turns


class Protocol(ABC):
    """Turns texts into tool calls, and observations into texts.

    Decoding is total: any text gives a call or a ``ProtocolError`` with a plain reason, in time
    linear in its length. The first action of a text counts; what comes after it is dropped,
    noted to the agent, and never becomes evidence.

    Attributes:
        name: What ``get_protocol`` takes.
        stop: Strings after which a model should stop writing; each belongs to the action.

    Args:
        tools: What the agent may call.
    """

    name: ClassVar[str]
    stop: ClassVar[tuple[str, ...]]

    def __init__(self, tools: Sequence[ToolSignature]) -> None:
        self.tools = tuple(tools)

    @abstractmethod
    def system_prompt(self) -> str:
        """Return the instructions that a policy needs before its first question."""

    @abstractmethod
    def encode(self, observation: str, kind: Kind) -> str:
        """Return an observation as a policy reads it.

        Nothing in a question or a result can be taken for a tag. A notice is the protocol's own
        word about a text that held no call, and may name tags.
        """

    @abstractmethod
    def decode(self, text: str) -> Action:
        """Return the first call in a text, or what was wrong."""

    def forms(self) -> Sequence[Form]:
        """Return the ways to write a valid call, for constrained decoding.

        Raises:
            ConfigurationError: The protocol does not say.
        """
        raise ConfigurationError(
            f"protocol {self.name!r} has no forms, so decoding cannot be constrained to its calls"
        )

    def write(self, call: ToolCall, *, space: str = "") -> str:
        """Return a text that ``decode`` takes for a call.

        Args:
            call: The call, its arguments in the order of the tool's parameters.
            space: What to put before each argument, for tokenizers that give a word other tokens
                after a space than after a tag.

        Raises:
            ConfigurationError: The protocol has no form for the call, or cannot hold its text.
        """
        wanted = {name: str(value) for name, value in call["arguments"].items()}
        for form in self.forms():
            text = _fill(form, [space + value for value in wanted.values()])
            read = None if text is None else self.decode(text)
            if text is None or not isinstance(read, Mapping) or read.get("name") != call["name"]:
                continue
            given: Any = read.get("arguments", {})
            found = {name: str(value).strip() for name, value in given.items()}
            if found == {name: value.strip() for name, value in wanted.items()}:
                return text
        raise ConfigurationError(f"protocol {self.name!r} cannot say {dict(call)!r:.200}")


def _fill(form: Form, values: Sequence[str]) -> str | None:
    """Return a form with its blanks filled in; None if there are not as many as values."""
    blanks = sum(isinstance(part, Blank) for part in form)
    if blanks != len(values):
        return None
    left = iter(values)
    return "".join(part if isinstance(part, str) else next(left) + part.end for part in form)


def make_call(
    name: str, arguments: dict[str, object], *, is_well_formed: bool, rest: str
) -> ToolCall:
    """Return a call; text that follows it makes it ill-formed and is noted."""
    if _CONTROL_TOKENS.sub("", rest).strip():
        return {"name": name, "arguments": arguments, "well_formed": False, "note": _IGNORED}
    return {"name": name, "arguments": arguments, "well_formed": is_well_formed}


def neutralize(text: str) -> str:
    """Return the text with lookalikes of tags and control tokens made harmless.

    Covered are the tags of the built-in protocols and the control tokens of the ChatML, Llama,
    Mistral, Gemma, T5 and DeepSeek families. The opening ``<`` becomes ``‹``, the opening ``[``
    of a token ``(``; a line that begins like a step of ReAct gets a ``|``.

    Example:
        >>> neutralize("x</information><|im_end|> 1 < 2")
        'x‹/information>‹|im_end|> 1 < 2'
    """
    return _LOOKALIKE.sub(lambda match: _HARMLESS[match[0]], text)
