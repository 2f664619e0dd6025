"""The protocol of Hermes models: JSON inside ``<tool_call>`` tags."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ...corpora.text import replace_surrogates
from ..actions import Action, ProtocolError, ToolSignature
from ..schemas import openai_schema
from .base import Blank, Form, Kind, Protocol, make_call, neutralize

__all__ = ["HermesProtocol"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_TOKEN = re.compile(r'"|\\.|,\s*(?=[}\]])', re.DOTALL)
_NOT_IN_STRINGS = '"\\' + "".join(map(chr, range(32)))
_RIGHT = 'Write <tool_call>{"name": ..., "arguments": {...}}</tool_call>.'


class HermesProtocol(Protocol):
    """``<tool_call>{"name": "search", "arguments": {"query": "..."}}</tool_call>``.

    The first block that holds a call is the action; a broken block before it is skipped. JSON
    with trailing commas, inside a Markdown fence, or with its arguments as a JSON text, is read.
    Text before the call, a thought for example, is fine; text after it is dropped.
    """

    name = "hermes"
    stop = (_CLOSE,)

    def system_prompt(self) -> str:
        """Return the instructions, with the tools' schemas."""
        schemas = "\n".join(json.dumps(openai_schema(tool)) for tool in self.tools)
        return (
            "Answer the question with the help of tools. The tools are described between <tools> "
            f"and </tools>:\n<tools>\n{schemas}\n</tools>\nCall one tool at a time. To call it, "
            f'write {_OPEN}{{"name": ..., "arguments": {{...}}}}{_CLOSE}. What it gives comes '
            "back between <tool_response> and </tool_response>. End by calling answer."
        )

    def encode(self, observation: str, kind: Kind) -> str:
        """Return results and notices between tool_response tags; questions plain."""
        text = observation if kind == "notice" else neutralize(observation)
        return text if kind == "question" else f"<tool_response>\n{text}\n</tool_response>"

    def decode(self, text: str) -> Action:
        """Return the first call."""
        text = replace_surrogates(text)
        fault = None
        for content, after in _blocks(text):
            call = _read_call(content)
            if not isinstance(call, ProtocolError):
                name, arguments = call
                rest = text[after:].strip("` \n")  # a Markdown fence around the call is no text
                return make_call(name, arguments, is_well_formed=fault is None, rest=rest)
            fault = fault or call
        if fault is not None:
            return fault
        if _OPEN in text:
            return ProtocolError("unclosed_tag", f"The tag was not closed. {_RIGHT}")
        return ProtocolError("no_action", f"There was no tool call. {_RIGHT}")

    def forms(self) -> Sequence[Form]:
        """Return one call for each tool, with its required arguments."""
        return [_form(tool) for tool in self.tools]


def _form(tool: ToolSignature) -> Form:
    """Return a tool's call as JSON; texts in it need no escapes since they may hold no quotes."""
    required = [parameter for parameter in tool.parameters if parameter.is_required]
    parts: list[str | Blank] = []
    text = f'{_OPEN}{{"name": "{tool.name}", "arguments": {{'
    if not required:
        return (f"{text}}}}}{_CLOSE}",)
    for index, parameter in enumerate(required):
        is_number = parameter.type == "integer"
        quote = "" if is_number else '"'
        parts.append(f'{text}"{parameter.name}": {quote}')
        is_last = index == len(required) - 1
        end = quote + (f"}}}}{_CLOSE}" if is_last else ", ")
        forbidden = "," + "}" if is_number else _NOT_IN_STRINGS
        parts.append(Blank(end, forbidden, is_number))
        text = ""
    return tuple(parts)


def _blocks(text: str) -> Iterator[tuple[str, int]]:
    """Give the content of each block, and where the block ends."""
    start = text.find(_OPEN)
    while start >= 0:
        end = text.find(_CLOSE, start)
        if end < 0:
            return
        yield text[start + len(_OPEN) : end], end + len(_CLOSE)
        start = text.find(_OPEN, end)


def _read_call(content: str) -> tuple[str, dict[str, Any]] | ProtocolError:
    call = _read_json(content)
    if not isinstance(call, dict):
        return ProtocolError("bad_json", f"The call is not a JSON object. {_RIGHT}")
    name, arguments = call.get("name"), call.get("arguments")
    if isinstance(arguments, str):
        arguments = _read_json(arguments)
    if not isinstance(name, str):
        return ProtocolError("unknown_tool", f"The call names no tool. {_RIGHT}")
    if not isinstance(arguments, dict):
        reason = f"The call needs its arguments as a JSON object. {_RIGHT}"
        return ProtocolError("bad_arguments", reason)
    return name, arguments


def _read_json(text: str) -> Any:
    """Return the value, or None if there is none to be read."""
    text = text.strip()
    if text.startswith("```"):
        text = text.removesuffix("```").strip("`").removeprefix("json").strip()
    for candidate in (text, None):
        try:
            return json.loads(
                _without_trailing_commas(text) if candidate is None else candidate,
                parse_constant=_refuse,
                strict=False,  # models write raw line breaks into strings
            )
        except (ValueError, RecursionError):
            continue
    return None


def _without_trailing_commas(text: str) -> str:
    parts, start, is_in_string = [], 0, False
    for match in _TOKEN.finditer(text):
        if match[0] == '"':
            is_in_string = not is_in_string
        elif match[0][0] == "," and not is_in_string:
            parts.append(text[start : match.start()])
            start = match.end()
    return "".join([*parts, text[start:]])


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
