"""What a chat model and an environment say to each other: messages from turns, and back.

An episode's turns hold all that was said, so that messages are made from them anew each time: an
episode that was put aside, or branched off, goes on with the very context it had.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...corpora.text import replace_surrogates
from ...envs.actions import ProtocolError
from ...envs.protocols import Protocol, neutralize
from ..rollouts.running import Reply, RunningEpisode
from ..rollouts.trajectory import Turn, encodable

__all__ = ["INSTRUCTIONS", "ChatCall", "ChatReply", "messages_of", "reply_of"]

INSTRUCTIONS = (
    "Answer the question with the help of the tools. Call one tool at a time. "
    "End by calling answer, with the answer as short as possible."
)
_IGNORED = "Not run: only one tool call of a message is run."
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64
_CUT = ("length", "content_filter")

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A tool call as a server sends it.

    Attributes:
        id: What the answer to it must name; may be empty.
        name: The tool.
        arguments: Its arguments, as a text that ought to be JSON.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One message of a model, as a server sends it.

    Attributes:
        text: What it wrote beside its calls.
        calls: Its tool calls.
        finish: The server's ``finish_reason``.
        stop: The stop string that ended it, where the server says so.
    """

    text: str = ""
    calls: tuple[ChatCall, ...] = ()
    finish: str = "stop"
    stop: str | None = None


def messages_of(episode: RunningEpisode) -> list[Message]:
    """Return the messages of an episode so far, as chat completions take them.

    With a text protocol its instructions are the system message, what the policy wrote is the
    assistant's, and what came back the user's. With tool calls each result stands in a tool
    message; what came back for a text without a call is a user message. What the environment
    says is neutralised: no document can end a message or begin one.
    """
    if episode.protocol is not None:
        messages = [_message("system", episode.system_prompt), _message("user", episode.question)]
        for turn in episode.turns:
            messages += [
                _message("assistant", _written(turn.action)),
                _message("user", turn.observation),
            ]
        return messages
    messages = [_message("system", INSTRUCTIONS), _message("user", neutralize(episode.question))]
    for number, turn in enumerate(episode.turns, start=1):
        messages += _tool_messages(turn, number)
    return messages


def reply_of(reply: ChatReply, protocol: Protocol | None) -> Reply:
    """Return what the environment is sent for a model's message.

    A message that was cut off, by the limit on tokens or by a content filter, is no action.
    """
    if reply.finish in _CUT:
        calls = (f"{call.name}({call.arguments})" for call in reply.calls)
        return Reply(replace_surrogates("\n".join([reply.text, *calls]).strip()), "length")
    if protocol is not None:
        return Reply(_with_stop(replace_surrogates(reply.text), protocol, reply.stop))
    if not reply.calls:
        return Reply(replace_surrogates(reply.text))
    return Reply(_call_action(reply))


def _with_stop(text: str, protocol: Protocol, stop: str | None) -> str:
    """Give back the stop string that a server has taken off, where it makes the text a call."""
    if not isinstance(protocol.decode(text), ProtocolError):
        return text
    for candidate in (stop,) if stop in protocol.stop else protocol.stop:
        whole = f"{text}{candidate}"
        if not isinstance(protocol.decode(whole), ProtocolError):
            return whole
    return text


def _call_action(reply: ChatReply) -> dict[str, Any]:
    """Return a message with calls as an action: the first good call, and all beside it."""
    read = [_read_arguments(call.arguments) for call in reply.calls]
    chosen = next((i for i, value in enumerate(read) if isinstance(value, dict)), 0)
    call = reply.calls[chosen]
    action: dict[str, Any] = {"name": call.name, "arguments": read[chosen]}
    if call.id:
        action["id"] = call.id
    if reply.text:
        action["text"] = reply.text
    if len(reply.calls) > 1:
        action["ignored"] = [
            {"id": other.id, "name": other.name, "arguments": other.arguments}
            for index, other in enumerate(reply.calls)
            if index != chosen
        ]
        action["well_formed"] = False
        which = "first that could be read" if chosen else "first"
        action["note"] = (
            f"Only the {which} of {len(reply.calls)} tool calls was run; the others were ignored."
        )
    cleaned: dict[str, Any] = encodable(action)
    return cleaned


def _read_arguments(text: str) -> Any:
    """Return the arguments as an object; as they are if they are none, for the game to refuse."""
    value: Any = text if text.strip() else {}
    for _ in range(2):  # some servers encode twice
        if isinstance(value, str):
            try:
                value = json.loads(value, parse_constant=_refuse)
            except (ValueError, RecursionError):
                break
    return value if isinstance(value, dict) else replace_surrogates(text)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _tool_messages(turn: Turn, number: int) -> list[Message]:
    action = turn.action
    observation = neutralize(turn.observation)
    if not isinstance(action, Mapping) or "name" not in action:
        return [_message("assistant", _written(action)), _message("user", observation)]
    calls = [action, *action.get("ignored", ())]
    ids = _unique_ids([str(call.get("id", "")) for call in calls], number)
    said = _message("assistant", str(action.get("text", ""))) | {
        "tool_calls": [_wire_call(call, id) for call, id in zip(calls, ids, strict=True)]
    }
    results = [observation, *[_IGNORED] * (len(calls) - 1)]
    return [
        said,
        *(
            _message("tool", text) | {"tool_call_id": id}
            for id, text in zip(ids, results, strict=True)
        ),
    ]


def _wire_call(call: Mapping[str, Any], id: str) -> Message:
    """Return a call as servers take it back: they refuse odd names, and parse the arguments."""
    arguments = call["arguments"]
    if isinstance(arguments, str):
        arguments = _read_arguments(arguments)
    if not isinstance(arguments, Mapping):
        arguments = {"malformed": arguments}
    name = _NOT_IN_NAMES.sub("_", str(call["name"]))[:_MAX_NAME_CHARS] or "unnamed"
    text = json.dumps(encodable(arguments), ensure_ascii=False)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def _unique_ids(ids: Sequence[str], turn: int) -> list[str]:
    """Return the ids of a message's calls; those that are missing or there twice are made."""
    return [
        id if id and id not in ids[:index] else f"call_{turn}_{index}"
        for index, id in enumerate(ids)
    ]


def _written(action: Any) -> str:
    """Return an action as the text that the policy wrote."""
    if isinstance(action, Mapping) and action.get("is_cut") is True:
        return str(action["text"])
    return action if isinstance(action, str) else json.dumps(encodable(action))


def _message(role: str, text: str) -> Message:
    return {"role": role, "content": replace_surrogates(text)}
