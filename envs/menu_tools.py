"""How a menu speaks the tools of each environment: what to call, and how to read what came back.

One class for each set of tools; an environment says by ``menu_tools`` which one is its own.
"""

import json
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple

from .actions import ToolCall
from .summaries import Sentence, split_sentences
from .web_pages import UNTRUSTED

__all__ = [
    "AccessMenu",
    "AssignMenu",
    "BrowseMenu",
    "Link",
    "MenuTools",
    "ProseMenu",
    "ReadMenu",
    "Reading",
    "ShellMenu",
]

_CACHED = 2_048  # observations whose parts are kept
_HEADING = re.compile(r"^(?:\d+\. )?\[([^\]\n]+)\] (.*)$", re.MULTILINE)
_CUT = "… [cut: read it for the rest]"
_PART = re.compile(r"^(.*?)(?:[(](?:page|part) (\d+) of (\d+)[)])?$")
_RESULT = re.compile(r"^\d+\. (.*)\n(\w+://\S+)$", re.MULTILINE)
_PAGE = re.compile(r"^(?:Page(?: (\d+) of (\d+))?: )?(.*)\n(\w+://\S+)$", re.MULTILINE)
_PARAGRAPH = re.compile(r"^\[\d+\] ", re.MULTILINE)
_PAGE_LINK = re.compile(r"^\[L\d+\] (.*) <([^<>\s]+)>$", re.MULTILINE)
_LINE = re.compile(r'\{"id": ("(?:[^"\\]|\\.)*"), "title": ("(?:[^"\\]|\\.)*"), "text": "(.*)')
_LINES_SHOWN = 3
_CORPUS_FILE = "corpus.jsonl"


class Link(NamedTuple):
    """Something that an observation shows and that can be opened.

    Attributes:
        title: What it is called.
        address: What opens it.
        part: Which part of it.
    """

    title: str
    address: str
    part: int = 1


class Reading(NamedTuple):
    """What an observation says: sentences under titles, and what can be opened."""

    sentences: tuple[Sentence, ...]
    links: tuple[Link, ...] = ()


class MenuTools(ABC):
    """One set of tools, for a menu. Nothing here knows a task.

    Attributes:
        asks_relations: Whether a query may say what of a name is asked; False where a name
            alone finds all there is about it.
    """

    asks_relations: ClassVar[bool] = True

    @abstractmethod
    def search(self, name: str, word: str = "") -> ToolCall:
        """Return the call that looks for a name, with a word of what is asked if there is one."""

    @abstractmethod
    def open(self, link: Link) -> ToolCall:
        """Return the call that opens a link."""

    @abstractmethod
    def read(self, observation: str) -> Reading:
        """Return what an observation says."""

    def answer(self, text: str, opened: Sequence[str]) -> ToolCall:
        """Return the call that answers; ``opened`` are the addresses opened so far."""
        return {"name": "answer", "arguments": {"text": text}}


class ReadMenu(MenuTools):
    """For ``search``, which shows documents, and ``read``, which shows those that were cut."""

    asks_relations = False

    def search(self, name: str, word: str = "") -> ToolCall:
        """Return the call that looks for a name and a word."""
        return {"name": "search", "arguments": {"query": f"{name} {word}".strip()}}

    def open(self, link: Link) -> ToolCall:
        """Return the call that reads a document, or a later page of it."""
        page = {"page": link.part} if link.part > 1 else {}
        return {"name": "read", "arguments": {"document_id": link.address, **page}}

    def read(self, observation: str) -> Reading:
        """Return the sentences of the documents, and the documents that were cut."""
        return _read_documents(observation)


class ProseMenu(ReadMenu):
    """For the same tools over prose, where a query that says more finds more."""

    asks_relations = True


class AccessMenu(MenuTools):
    """For ``search``, which shows snippets, and ``access``, which opens a page."""

    def search(self, name: str, word: str = "") -> ToolCall:
        """Return the call that looks for a name and a word."""
        return {"name": "search", "arguments": {"query": f"{name} {word}".strip()}}

    def open(self, link: Link) -> ToolCall:
        """Return the call that opens a page, or a later part of it."""
        page = {"page": link.part} if link.part > 1 else {}
        return {"name": "access", "arguments": {"url": link.address, **page}}

    def read(self, observation: str) -> Reading:
        """Return the sentences of snippets or of a page, and what the results lead to."""
        return _read_pages(observation)


class AssignMenu(MenuTools):
    """For ``assign``: one searcher is sent out for the query; reports name no documents."""

    asks_relations = False

    def search(self, name: str, word: str = "") -> ToolCall:
        """Return the call that sends a searcher out."""
        return {"name": "assign", "arguments": {"searcher_0": f"{name} {word}".strip()}}

    def open(self, link: Link) -> ToolCall:
        """Return the call that has a searcher look for a title."""
        return self.search(link.title)

    def read(self, observation: str) -> Reading:
        """Return the sentences of the reports."""
        return Reading(split_sentences(observation))


class ShellMenu(MenuTools):
    """For ``shell``: lines of the corpus that hold a name."""

    def search(self, name: str, word: str = "") -> ToolCall:
        """Return the command that shows the first lines that hold a name, and the word."""
        also = f" | grep -i -F {shlex.quote(word)}" if word else ""
        command = f"grep -F {shlex.quote(name)} {_CORPUS_FILE}{also} | head -n {_LINES_SHOWN}"
        return {"name": "shell", "arguments": {"command": command}}

    def open(self, link: Link) -> ToolCall:
        """Return the command that shows the whole line of a document."""
        head = shlex.quote(f'{{"id": {json.dumps(link.address, ensure_ascii=False)}, ')
        command = f"grep -F {head} {_CORPUS_FILE}"
        return {"name": "shell", "arguments": {"command": command}}

    def read(self, observation: str) -> Reading:
        """Return the sentences of the lines, and the documents whose lines were cut."""
        return _read_lines(observation)


class BrowseMenu(AccessMenu):
    """For the web: ``search``, ``open`` with an address, ``answer`` with its sources."""

    def open(self, link: Link) -> ToolCall:
        """Return the call that opens a page, or a later part of it."""
        page = {"page": link.part} if link.part > 1 else {}
        return {"name": "open", "arguments": {"url": link.address, **page}}

    def answer(self, text: str, opened: Sequence[str]) -> ToolCall:
        """Return the answer, which cites every page that was opened."""
        cited = " ".join(dict.fromkeys(opened))
        return {"name": "answer", "arguments": {"text": text, "citations": cited}}


@lru_cache(maxsize=_CACHED)
def _read_documents(observation: str) -> Reading:
    links = []
    starts = list(_HEADING.finditer(observation))
    ends = [*(match.start() for match in starts), len(observation)][1:]
    for match, end in zip(starts, ends, strict=True):
        title, part, parts = _parted(match[2])
        if observation[match.end() : end].rstrip().endswith(_CUT):
            links.append(Link(title, match[1]))
        elif part < parts:
            links.append(Link(title, match[1], part + 1))
    text = _HEADING.sub(lambda match: f"[{match[1]}] {_parted(match[2])[0]}", observation)
    return Reading(split_sentences(text.replace(_CUT, "")), tuple(links))


@lru_cache(maxsize=_CACHED)
def _read_pages(observation: str) -> Reading:
    results = list(_RESULT.finditer(observation))
    if results:
        ends = [*(match.start() for match in results), len(observation)][1:]
        blocks = [
            f"[{match[2]}] {match[1]}\n{_snippet(observation[match.end() : end])}"
            for match, end in zip(results, ends, strict=True)
        ]
        return Reading(split_sentences("\n".join(blocks)), tuple(Link(m[1], m[2]) for m in results))
    page = _PAGE.match(observation)
    if page is None:
        return Reading(())
    title, part, parts = _parted(page[3])
    part, parts = (int(page[1]), int(page[2])) if page[1] else (part, parts)
    body = observation[page.end() :].replace(UNTRUSTED, "")
    links = [Link(match[1], match[2]) for match in _PAGE_LINK.finditer(body)]
    if part < parts:
        links.insert(0, Link(title, page[4], part + 1))
    text = _PARAGRAPH.sub("", _PAGE_LINK.sub("", body))
    return Reading(split_sentences(f"[{page[4]}] {title}\n{text}"), tuple(links))


@lru_cache(maxsize=_CACHED)
def _read_lines(observation: str) -> Reading:
    try:
        output = json.loads(observation)["stdout"]
    except (ValueError, TypeError, KeyError):
        output = observation  # the environment may show plain text
    blocks, links = [], []
    for line in str(output).split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            address, title = json.loads(match[1]), json.loads(match[2])
        except ValueError:  # a line that only looks like one of the corpus
            continue
        is_whole = match[3].endswith('"}')
        text = match[3].removesuffix('"}').replace("\\n", "\n").replace('\\"', '"')
        blocks.append(f"[{address}] {title}\n{text}")
        if not is_whole:
            links.append(Link(title, address))
    return Reading(split_sentences("\n".join(blocks)), tuple(links))


def _snippet(text: str) -> str:
    """Return a snippet as sentences: what was left out stands for a space."""
    return text.replace("…", " ").lstrip(" \n#")


def _parted(title: str) -> tuple[str, int, int]:
    """Return a title without what says which part of how many is shown, and those two numbers."""
    match = _PART.match(title)
    if match is None or match[2] is None:
        return title.strip(), 1, 1
    return match[1].strip(), int(match[2]), int(match[3])
