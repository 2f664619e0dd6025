"""The live web as a site: search through an engine, open what it finds; recorded and replayed."""

import inspect
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Self

from ..errors import BackendError, ConfigurationError, PageError, raise_unknown
from ..site import Page, Result
from ..text import cut_text, replace_surrogates
from .addresses import AddressRules, clean_url
from .answers import Answer
from .asking import Live, Replay, Source
from .bodies import decode_text
from .cassette import Cassette
from .engines import ENGINES, Engine, make_engine
from .limits import Limits
from .main_text import get_main_text, main_page

__all__ = ["LiveSite", "live_site"]

_KEPT_PAGES = 256
_HTML = ("html", "xml")


class LiveSite:
    """The live web, or what was recorded of it. Safe to use from several threads.

    With ``record``, every answer is kept, faults too, and a request that has an answer is not
    sent again; a later recording asks again only what ended in a fault. With ``replay``, nothing
    is sent: the same calls give the same bytes, and what was not recorded is a ``PageError`` with
    the code ``not_recorded``.

    Args:
        search: The engine: ``"serper"``, ``"brave"``, ``"tavily"``, ``"bing"``, each with
            its key in the environment, or ``"searxng:http://127.0.0.1:8888"``; any takes an address
            behind a colon. To replay: only the name counts, and only if the cassette has several.
        record: The folder of a cassette to write.
        replay: The folder of a cassette to give again.
        allow: Addresses and networks that may be opened though they are not public, and ports
            as ``":8443"``. The search engine's own address needs no permission.
        limits: What a fetch may cost, and how politely it goes about it.
        main_text: What finds the main text: ``"resiliparse"``, ``"trafilatura"``, or ``"whole"``.
        results_per_page: How many results a search gives; SearXNG decides for itself.
        user_agent: Who the fetcher says it is, to servers and their robots.txt.

    Raises:
        ConfigurationError: An argument cannot be used, or a key is missing.
    """

    def __init__(
        self,
        search: str | None = None,
        *,
        record: str | os.PathLike[str] | None = None,
        replay: str | os.PathLike[str] | None = None,
        allow: Sequence[str] = (),
        limits: Limits | None = None,
        main_text: str = "resiliparse",
        results_per_page: int = 10,
        user_agent: str = "seekgym",
    ) -> None:
        if record is not None and replay is not None:
            raise ConfigurationError("record and replay exclude each other; pass one of them")
        if search is None and replay is None:
            raise ConfigurationError(
                "search is missing: pass search='searxng:http://127.0.0.1:8888', "
                f"or one of {', '.join(ENGINES)}, or replay='folder'"
            )
        if not 1 <= results_per_page <= 20:
            raise ConfigurationError(
                f"results_per_page must be between 1 and 20, got {results_per_page!r}"
            )
        self._arguments = {
            "search": search,
            "record": record,
            "replay": replay,
            "allow": tuple(allow),
            "limits": limits,
            "main_text": main_text,
            "results_per_page": results_per_page,
            "user_agent": user_agent,
        }
        self._main_text = get_main_text(main_text)
        self._count = results_per_page
        rules = AddressRules.of(allow)
        if replay is not None:
            cassette = Cassette.existing(replay)
            self._engine = _recorded_engine(cassette, search)
            self._source: Source = Replay(cassette)
            where = f", recorded {cassette.fingerprint[:16]}"
        else:
            self._engine = make_engine(search or "")
            kept = None if record is None else self._open_cassette(record)
            self._source = Live(self._engine, (limits or Limits(), rules, user_agent), kept)
            where = ""
        self._name = f"live ({self._engine.name}, {main_text}, {results_per_page} a page{where})"
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What this site is; a replayed one is known by what its cassette holds."""
        return self._name

    def search(self, query: str, page: int = 1) -> Sequence[Result]:
        """Return one page of results, best first; none for a query without words.

        Raises:
            BackendError: The engine did not answer, or in a format that is not known.
            PageError: The search was not recorded.
        """
        query = " ".join(replace_surrogates(query).split())
        if not query or not 1 <= page <= self._engine.pages:
            return ()
        request = {"search": query, "engine": self._engine.name, "page": page, "count": self._count}
        answer = self._source.ask([request])[0].check()
        return self._engine.read(answer.body, page, self._count)

    def open(self, url: str) -> Page:
        """Return the page at an address; a fragment is ignored.

        Raises:
            PageError: It cannot be shown; the code says why.
            BackendError: No name can be resolved, or the cassette is broken.
        """
        page = self.open_many([url])[0]
        if isinstance(page, Exception):
            raise page
        return page

    def open_many(self, urls: Sequence[str]) -> list[Page | PageError | BackendError]:
        """Return the page at each address, or the error that ``open`` raises; fetch all at once."""
        opened: dict[str, Page | PageError | BackendError] = {}
        addresses = [self._address(url, opened) for url in urls]
        missing = list(dict.fromkeys(each for each in addresses if each not in opened))
        answers = self._source.ask([{"fetch": address} for address in missing])
        for address, answer in zip(missing, answers, strict=True):
            opened[address] = self._read(address, answer)
        return [opened[address] for address in addresses]

    def close(self) -> None:
        """Close every connection; the site can still be used."""
        self._source.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same site, so that copies of environments share it."""
        return self

    def __reduce__(self) -> Any:
        """Be made anew from the same arguments in another process: keys do not travel."""
        return _remade, (self._arguments,)

    def _open_cassette(self, folder: str | os.PathLike[str]) -> Cassette:
        return Cassette(folder, secrets=self._engine.secrets, keeps_faults=False)

    def _address(self, url: str, opened: dict[str, Page | PageError | BackendError]) -> str:
        """Return an address in its one spelling; note what is open already, or cannot be."""
        try:
            address = str(clean_url(replace_surrogates(url)))
        except PageError as error:
            opened[url] = error
            return url
        with self._lock:
            if address in self._pages:
                self._pages.move_to_end(address)
                opened[address] = self._pages[address]
        return address

    def _read(self, address: str, answer: Answer) -> Page | PageError | BackendError:
        try:
            page = self._page(answer.check())
        except (PageError, BackendError) as error:
            return error
        with self._lock:
            self._pages[address] = page
            while len(self._pages) > _KEPT_PAGES:
                self._pages.popitem(last=False)
        return page

    def _page(self, answer: Answer) -> Page:
        text = decode_text(answer.body, answer.content_type)
        if not _is_html(answer.content_type, text):
            return _plain_page(answer.url, text)
        return main_page(text, answer.url, self._main_text)


def live_site(search: str | None = None, **options: Any) -> LiveSite:
    """Return the live web as a site; the arguments are those of ``LiveSite``.

    Raises:
        ConfigurationError: An argument is unknown, or cannot be used.
    """
    known = set(inspect.signature(LiveSite).parameters)
    for name in options:
        if name not in known:
            raise_unknown("argument of the live web", name, known)
    return LiveSite(search, **options)


def _remade(arguments: dict[str, Any]) -> LiveSite:
    return LiveSite(**arguments)


def _recorded_engine(cassette: Cassette, search: str | None) -> Engine:
    """Return the engine whose answers a cassette holds; it is never asked."""
    recorded = {request["engine"] for request in cassette.requests if "search" in request}
    named = (search or "").partition(":")[0]
    if not named and len(recorded) > 1:
        raise ConfigurationError(
            f"search is missing: the cassette has searches of {', '.join(sorted(recorded))}"
        )
    name = named or next(iter(recorded), "searxng")
    if name not in ENGINES:
        raise_unknown("search engine", name, ENGINES)
    return ENGINES[name]("http://127.0.0.1")


def _is_html(content_type: str, text: str) -> bool:
    media = content_type.split(";")[0].strip().lower()
    return media.endswith(_HTML) or (not media and text.lstrip()[:1] == "<")


def _plain_page(url: str, text: str) -> Page:
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    shown = tuple(replace_surrogates(part) for part in paragraphs if part)
    return Page(url, cut_text(shown[0], 80) if shown else url, shown)
