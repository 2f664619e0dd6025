"""Show an episode to a person: as plain text, or as a page."""

import html
from collections.abc import Iterable, Mapping

from ..corpora.text import replace_surrogates
from .actions import ProtocolError
from .episode import Message

__all__ = ["describe_action", "describe_call", "to_html", "to_html_messages", "to_text"]

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}"
    ".message{white-space:pre-wrap;overflow-wrap:anywhere;border-left:4px solid #bbb;"
    "margin:.6rem 0;padding:.1rem .8rem}.agent{border-color:#2a6fdb;background:#f2f6fd}"
)


def describe_action(action: object) -> str:
    """Return an action in one line, however wrong it is.

    Example:
        >>> describe_action({"name": "search", "arguments": {"query": "Ōsaka"}})
        "search(query='Ōsaka')"
    """
    if isinstance(action, ProtocolError):
        return f"(no tool call: {action.code})"
    try:
        if isinstance(action, Mapping) and isinstance(action.get("arguments"), Mapping):
            return describe_call(str(action.get("name")), action["arguments"])
        return replace_surrogates(f"(no tool call: {str(action)[:200]})")
    except Exception:  # an agent may send any object, and looking at it may fail
        return f"(no tool call: {type(action).__name__})"


def describe_call(name: str, arguments: Mapping[str, object]) -> str:
    """Return a tool call in one line."""
    parts = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return replace_surrogates(f"{name}({parts})")


def to_text(messages: Iterable[Message]) -> str:
    """Return the messages as text, each under the name of who wrote it."""
    return "\n\n".join(f"[{m.source}]\n{m.text}" for m in messages)


def to_html(messages: Iterable[Message]) -> str:
    """Return the messages as a page of its own."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Episode</title>"
        f"<style>{STYLE}</style><body>{to_html_messages(messages)}</body></html>"
    )


def to_html_messages(messages: Iterable[Message]) -> str:
    """Return the messages as a piece of a page; everything in them is escaped."""
    return "".join(
        f'<div class="message {message.source}"><b>{message.source}</b>\n'
        f"{html.escape(message.text)}</div>"
        for message in messages
    )
