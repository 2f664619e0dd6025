"""Search engines of the live web: what each is asked, and how its answer reads.

A key comes from the environment, each time that it is used: an engine does not hold it, so no
pickle, representation or message can show it.
"""

import html
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

from ..errors import BackendError, ConfigurationError, raise_unknown
from ..site import Result

__all__ = [
    "ENGINES",
    "BingStyle",
    "Brave",
    "Engine",
    "Query",
    "SearXNG",
    "Serper",
    "Tavily",
    "make_engine",
]

_TAG = re.compile(r"</?(?:b|em|i|mark|span|strong)\b[^<>]{0,200}>", re.IGNORECASE)
_MAX_SHOWN_CHARS = 200
_NEAR = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Query:
    """A request to a search engine."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes = b""


class Engine(ABC):
    """A search engine.

    Args:
        base: Where it answers, if not at its usual address.

    Raises:
        ConfigurationError: It needs an address or a key, or its key would travel in the clear.
    """

    name: ClassVar[str]
    key_variable: ClassVar[str | None] = None
    usual_base: ClassVar[str | None] = None
    pages: ClassVar[int] = 100  # the last page that it has

    def __init__(self, base: str | None = None) -> None:
        base = base or self.usual_base
        if base is None:
            raise ConfigurationError(
                f"search={self.name!r} needs an address, for example "
                f"'{self.name}:http://127.0.0.1:8888'"
            )
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(
                f"search={self.name!r}: {parts.hostname or 'that'!r} is no address; "
                "it begins with http:// or https:// and holds no user or password"
            )
        if self.key_variable and parts.scheme == "http" and parts.hostname not in _NEAR:
            raise ConfigurationError(
                f"search={self.name!r}: the key would travel in the clear to {parts.hostname}; "
                "use https"
            )
        self.base = base.rstrip("/")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be kept out of everything that is kept or shown."""
        key = os.environ.get(self.key_variable or "", "").strip()
        return (key,) if key else ()

    def key(self) -> str:
        """Return the key.

        Raises:
            ConfigurationError: The environment has none, or one that no header can hold.
        """
        if not self.secrets:
            raise ConfigurationError(
                f"search={self.name!r} needs a key in the environment: "
                f"export {self.key_variable}=..."
            )
        if not self.secrets[0].isascii() or not self.secrets[0].isprintable():
            raise ConfigurationError(f"{self.key_variable} holds a character that no key has")
        return self.secrets[0]

    @abstractmethod
    def query(self, text: str, page: int, count: int) -> Query:
        """Return what to ask for one page of results, pages counted from 1."""

    @abstractmethod
    def rows(self, answer: Mapping[str, Any]) -> Any:
        """Return the list of results in an answer; what is no list is a format not known."""

    def read(self, body: bytes, page: int, count: int) -> tuple[Result, ...]:
        """Return the results that an answer holds.

        Raises:
            BackendError: The answer is not in this engine's format.
        """
        try:
            answer = json.loads(body)
            rows = self.rows(answer) if isinstance(answer, dict) else None
            if not isinstance(rows, list):
                raise TypeError("there is no list of results")
            results = [self.result(row) for row in rows]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise BackendError(
                f"{self.name}: the answer is not in the format known here "
                f"({type(error).__name__}: {str(error)[:_MAX_SHOWN_CHARS]})"
            ) from None
        return tuple(dict.fromkeys(results))[self.first(page, count) :][:count]

    def first(self, page: int, count: int) -> int:
        """Return which result of an answer is the first of a page."""
        return 0

    def result(self, row: Mapping[str, Any]) -> Result:
        """Return one result."""
        return _result(row, "url", "title", "content")


class SearXNG(Engine):
    """A SearXNG server, with ``json`` among the formats of its settings. Needs no key."""

    name = "searxng"

    def query(self, text: str, page: int, count: int) -> Query:
        """Return what to ask; how many results a page has is the server's choice."""
        fields = {"q": text, "format": "json", "pageno": page}
        return Query("GET", f"{self.base}/search?{urlencode(fields)}", {})

    def rows(self, answer: Mapping[str, Any]) -> Any:
        """Return ``results``; none because no engine behind it answered is a failure."""
        if not answer["results"] and answer.get("unresponsive_engines"):
            silent = answer["unresponsive_engines"]
            raise BackendError(f"searxng: no engine answered: {silent!r:.{_MAX_SHOWN_CHARS}}")
        return answer["results"]


class Serper(Engine):
    """Serper, Google's results; the key is SERPER_API_KEY."""

    name = "serper"
    key_variable = "SERPER_API_KEY"
    usual_base = "https://google.serper.dev"

    def query(self, text: str, page: int, count: int) -> Query:
        """Return what to ask."""
        content = {"q": text, "num": count, "page": page}
        return _posted(f"{self.base}/search", {"x-api-key": self.key()}, content)

    def rows(self, answer: Mapping[str, Any]) -> Any:
        """Return ``organic``."""
        return answer["organic"]

    def result(self, row: Mapping[str, Any]) -> Result:
        """Return one result; not each has a snippet."""
        return _result(row, "link", "title", "snippet")


class Brave(Engine):
    """Brave Search; the key is BRAVE_API_KEY. Ten pages of at most twenty results."""

    name = "brave"
    key_variable = "BRAVE_API_KEY"
    usual_base = "https://api.search.brave.com/res/v1"
    pages = 10

    def query(self, text: str, page: int, count: int) -> Query:
        """Return what to ask; pages are counted from 0 there, and queries have 400 characters."""
        fields = {"q": text[:400], "count": min(count, 20), "offset": page - 1}
        headers = {"x-subscription-token": self.key(), "accept": "application/json"}
        return Query("GET", f"{self.base}/web/search?{urlencode(fields)}", headers)

    def rows(self, answer: Mapping[str, Any]) -> Any:
        """Return ``web.results``; an answer without ``web`` has none."""
        if answer["type"] != "search":
            raise TypeError(f"its type is {answer['type']!r}")
        return answer["web"]["results"] if answer.get("web") else []

    def result(self, row: Mapping[str, Any]) -> Result:
        """Return one result."""
        return _result(row, "url", "title", "description")


class Tavily(Engine):
    """Tavily; the key is TAVILY_API_KEY. It has no pages: twenty results are all."""

    name = "tavily"
    key_variable = "TAVILY_API_KEY"
    usual_base = "https://api.tavily.com"

    def query(self, text: str, page: int, count: int) -> Query:
        """Return what to ask: all results up to the end of the page."""
        content = {"query": text[:400], "max_results": min(20, page * count)}
        headers = {"authorization": f"Bearer {self.key()}"}
        return _posted(f"{self.base}/search", headers, content)

    def rows(self, answer: Mapping[str, Any]) -> Any:
        """Return ``results``."""
        return answer["results"]

    def first(self, page: int, count: int) -> int:
        """Return where the page begins."""
        return (page - 1) * count


class BingStyle(Engine):
    """An endpoint that speaks Bing's Web Search API 7; the key is BING_API_KEY."""

    name = "bing"
    key_variable = "BING_API_KEY"
    usual_base = "https://api.bing.microsoft.com"

    def query(self, text: str, page: int, count: int) -> Query:
        """Return what to ask."""
        fields = {"q": text, "count": count, "offset": (page - 1) * count}
        headers = {"ocp-apim-subscription-key": self.key()}
        return Query("GET", f"{self.base}/v7.0/search?{urlencode(fields)}", headers)

    def rows(self, answer: Mapping[str, Any]) -> Any:
        """Return ``webPages.value``; an answer without ``webPages`` has none."""
        if answer["_type"] != "SearchResponse":
            raise TypeError(f"its type is {answer['_type']!r}")
        return answer["webPages"]["value"] if answer.get("webPages") else []

    def result(self, row: Mapping[str, Any]) -> Result:
        """Return one result."""
        return _result(row, "url", "name", "snippet")


ENGINES: Mapping[str, type[Engine]] = {
    engine.name: engine for engine in (SearXNG, Serper, Brave, Tavily, BingStyle)
}


def make_engine(search: str) -> Engine:
    """Return the engine that a text names: ``serper``, or ``searxng:http://127.0.0.1:8888``.

    Raises:
        ConfigurationError: It is unknown, needs an address or a key.
    """
    name, _, base = search.partition(":")
    if name not in ENGINES:
        raise_unknown("search engine", name, ENGINES)
    engine = ENGINES[name](base or None)
    if engine.key_variable:
        engine.key()  # a missing one is found here, not in the middle of an episode
    return engine


def _posted(url: str, headers: Mapping[str, str], content: Mapping[str, Any]) -> Query:
    kind = {"content-type": "application/json"}
    return Query("POST", url, {**headers, **kind}, json.dumps(content).encode())


def _result(row: Mapping[str, Any], url: str, title: str, snippet: str) -> Result:
    if not isinstance(row[url], str) or not isinstance(row[title], str):
        raise TypeError(f"{url!r} or {title!r} is no text")
    return Result(row[url].strip(), _line(row[title]), _line(row.get(snippet) or ""))


def _line(text: str) -> str:
    """Return plain text on one line: some engines mark words with HTML."""
    return " ".join(html.unescape(_TAG.sub("", text)).split())
