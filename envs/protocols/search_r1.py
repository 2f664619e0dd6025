"""The protocol of Search-R1 (Jin et al. 2025, arXiv:2503.09516): tags in running text."""

import re
from collections.abc import Sequence

from ...corpora.text import replace_surrogates
from ..actions import Action, ProtocolError
from .base import Blank, Form, Kind, Protocol, make_call, neutralize

__all__ = ["SearchR1Protocol", "check_sequence", "extract_answer"]

_TAG = re.compile(r"(</?(?:think|search|information|answer)>)")
_ANY_CASE = re.compile(r"<\s{0,8}(?:search|answer)\s{0,8}>", re.IGNORECASE)
_ARGUMENT = {"search": "query", "answer": "text"}
# state -> {tag: next state}: think, search, information, think, ..., answer.
_NEXT = {
    "start": {"<think>": "in_think"},
    "in_think": {"</think>": "after_think"},
    "after_think": {"<search>": "in_search", "<answer>": "in_answer"},
    "in_search": {"</search>": "after_search"},
    "after_search": {"<information>": "in_information"},
    "in_information": {"</information>": "information"},
    "information": {"<think>": "in_think"},
    "in_answer": {"</answer>": "end"},
    "end": {},
}


class SearchR1Protocol(Protocol):
    """``<think>``, then ``<search>query</search>`` or ``<answer>text</answer>``.

    Rules, those of Search-R1: the text is cut at the first ``</search>``, or if there is none
    at the first ``</answer>``, and the first tag pair in it is the action, wherever it stands,
    inside ``<think>`` too. Tags are lowercase and have no spaces or attributes. A turn is well
    formed if it is a thought, then an action, and nothing else. Only ``search`` and ``answer``
    can be said.
    """

    name = "search-r1"
    stop = ("</search>", "</answer>")

    def system_prompt(self) -> str:
        """Return the instructions."""
        return (
            "Answer the question. Think inside <think> and </think> whenever you learn "
            "something. If you need to know more, write <search>what to look for</search>; the "
            "results come back between <information> and </information>. Search as often as you "
            "need. When you know the answer, write it, as short as possible, inside <answer> and "
            "</answer>, for example <answer>Beijing</answer>."
        )

    def encode(self, observation: str, kind: Kind) -> str:
        """Return results between information tags; questions and notices plain."""
        if kind == "notice":
            return f"\n{observation}\n"
        text = neutralize(observation)
        if kind == "question":
            return f"Question: {text}\n"
        return f"\n\n<information>{text}</information>\n\n"

    def decode(self, text: str) -> Action:
        """Return the first action."""
        text = replace_surrogates(text)
        kept = _cut(text)
        found = [(start, name) for name in _ARGUMENT if (start := _opening(kept, name)) >= 0]
        if not found:
            return _explain(text)
        start, name = min(found)
        end = kept.index(f"</{name}>", start)
        content = kept[start + len(name) + 2 : end].strip()
        after = end + len(name) + 3
        tags = [part for part in _TAG.split(kept[:after]) if part.strip()]
        shape = [part for part in tags if _TAG.fullmatch(part)]
        is_well_formed = (
            shape == ["<think>", "</think>", f"<{name}>", f"</{name}>"]
            and tags[0] == "<think>"
            and tags[-1] == f"</{name}>"
            and tags.index(f"<{name}>") == tags.index("</think>") + 1
        )
        return make_call(
            name,
            {_ARGUMENT[name]: content},
            is_well_formed=is_well_formed,
            rest=text[after:],
        )

    def forms(self) -> Sequence[Form]:
        """Return a search and an answer, without a thought before."""
        return [(f"<{name}>", Blank(f"</{name}>", "<>\n")) for name in _ARGUMENT]


def extract_answer(text: str) -> str | None:
    """Return the last answer in a whole trajectory's text, or None.

    Pass only what the agent wrote, without the prompt: the original wants two answers because
    its prompt holds one as an example. Environments never use this; they score the answer call.
    """
    end = text.rfind("</answer>")
    while end >= 0:
        previous = text.rfind("</answer>", 0, end)
        start = text.find("<answer>", max(previous, 0), end)
        if start >= 0:
            return text[start + len("<answer>") : end].strip()
        end = previous
    return None


def check_sequence(text: str) -> str | None:
    """Return what breaks the order of tags in an assistant's text, or None if it is well formed.

    The order is that of Search-R1 v0.3 (arXiv:2505.15117): a thought, a search, information,
    and so on up to a thought and an answer, with nothing between the tags.
    """
    state = "start"
    for part in _TAG.split(text):
        if _TAG.fullmatch(part):
            if part not in _NEXT[state]:
                return f"unexpected {part} (state: {state})"
            state = _NEXT[state][part]
        elif part.strip() and not state.startswith("in_"):
            return f"unexpected text {part.strip()[:40]!r} between tags (state: {state})"
    return None if state == "end" else f"the text ends early (state: {state})"


def _cut(text: str) -> str:
    for tag in ("</search>", "</answer>"):
        end = text.find(tag)
        if end >= 0:
            return text[: end + len(tag)]
    return text


def _opening(text: str, name: str) -> int:
    """Return where the first opening tag stands that is closed later, or -1."""
    start = text.find(f"<{name}>")
    return start if 0 <= start < text.rfind(f"</{name}>") else -1


def _explain(text: str) -> ProtocolError:
    right = "Write <search>what to look for</search> or <answer>your answer</answer>."
    if "<search>" in text or "<answer>" in text:
        return ProtocolError("unclosed_tag", f"The tag was not closed. {right}")
    if _ANY_CASE.search(text):
        reason = f"Tags are lowercase and without spaces. {right}"
        return ProtocolError("no_action", reason)
    return ProtocolError("no_action", f"There was no search and no answer. {right}")
