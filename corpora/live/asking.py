"""Where the answers of a live site come from: the web itself, or a cassette."""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import httpx

from ..errors import BackendError, PageError
from .addresses import AddressRules
from .answers import Answer
from .cassette import Cassette
from .engines import Engine
from .fetch import Fetcher, fault_of_status
from .limits import Limits
from .loop import BackgroundLoop
from .scrubbing import scrub, scrub_text
from .wire import Clock, Received, Wire

__all__ = ["Live", "Replay", "Request", "Source"]

Request = Mapping[str, Any]
_MAX_SHOWN_CHARS = 200


class Source(Protocol):
    """Answers requests: ``{"fetch": url}``, or ``{"search": query, "page": 1, ...}``."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return one answer for each request."""

    def close(self) -> None:
        """Close every connection."""


class Replay:
    """Answers from a cassette, and from nothing else."""

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return what was recorded, or the fault that nothing was."""
        return [self._cassette.read(request) or _not_recorded(request) for request in requests]

    def close(self) -> None:
        """Do nothing: nothing is open."""


class Live:
    """Answers from the web, many at once; keeps them if there is a cassette.

    Args:
        engine: Answers searches.
        fetching: Limits, rules of addresses, and the name that pages are fetched under.
        cassette: Keeps each answer, and gives it again.
    """

    def __init__(
        self,
        engine: Engine,
        fetching: tuple[Limits, AddressRules, str],
        cassette: Cassette | None,
    ) -> None:
        self._engine = engine
        self._fetching = fetching
        self._cassette = cassette
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return what was recorded of each request; send what was not."""
        answers = [self._kept(request) for request in requests]
        missing = [place for place, answer in enumerate(answers) if answer is None]
        asked = [requests[place] for place in missing]
        if asked:
            for place, answer in zip(missing, self._run().ask(asked), strict=True):
                is_kept = self._cassette is not None
                answers[place] = self._keep(requests[place], answer) if is_kept else answer
        return [answer for answer in answers if answer is not None]

    def close(self) -> None:
        """Close every connection; the next request opens new ones."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None and running.process == os.getpid():
            running.loop.close()

    def _kept(self, request: Request) -> Answer | None:
        answer = None if self._cassette is None else self._cassette.read(request)
        return None if answer is None or answer.is_backend_fault else answer

    def _keep(self, request: Request, answer: Answer) -> Answer:
        assert self._cassette is not None
        return self._cassette.write(request, answer)

    def _run(self) -> "_Running":
        """Return the running loop of this process; a thread does not outlive a fork."""
        with self._lock:
            if self._running is None or self._running.process != os.getpid():
                self._running = _Running(self._engine, *self._fetching)
            return self._running


class _Running:
    """A loop with its connections."""

    def __init__(
        self, engine: Engine, limits: Limits, rules: AddressRules, user_agent: str
    ) -> None:
        self.process = os.getpid()
        self.loop = BackgroundLoop()
        self._engine = engine
        self._fetcher, self._wire = self.loop.run(_open(limits, rules, user_agent))
        self.loop.close_with(self._fetcher)
        self.loop.close_with(self._wire)

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Send every request at once."""
        return self.loop.run(self._ask(requests))

    async def _ask(self, requests: Sequence[Request]) -> list[Answer]:
        return await asyncio.gather(*(self._answer(request) for request in requests))

    async def _answer(self, request: Request) -> Answer:
        if "fetch" in request:
            return await self._fetcher.fetch(request["fetch"])
        return await _search(self._engine, self._wire, request)


async def _open(limits: Limits, rules: AddressRules, user_agent: str) -> tuple[Fetcher, Wire]:
    """Make in the loop what belongs to it. The engine's address is the user's own choice."""
    return Fetcher(limits, rules, user_agent), Wire(limits, rules=None)


async def _search(engine: Engine, wire: Wire, request: Request) -> Answer:
    """Ask a search engine; whatever goes wrong is its fault, not that of who searches."""
    try:
        received = await _ask_engine(engine, wire, request)
        body = scrub(received.body, engine.secrets)
        _check_status(engine, received.status, body)
        engine.read(body, request["page"], request["count"])
    except TimeoutError:
        reason = f"{engine.name} did not answer within {wire.limits.total_s:g} seconds"
        return Answer.of_fault(engine.name, BackendError(reason))
    except (PageError, BackendError) as error:
        reason = str(error) if isinstance(error, BackendError) else f"{engine.name}: {error}"
        reason = scrub_text(reason, engine.secrets)
        return Answer.of_fault(engine.name, BackendError(reason))
    return Answer(engine.name, received.headers.get("content-type", ""), body)


async def _ask_engine(engine: Engine, wire: Wire, request: Request) -> Received:
    query = engine.query(request["search"], request["page"], request["count"])
    headers = {"accept": "application/json", "accept-encoding": "gzip", **query.headers}

    def sent() -> httpx.Request:
        return httpx.Request(query.method, query.url, headers=headers, content=query.content)

    async with Clock(wire.limits.total_s) as clock:
        return await wire.send(sent, clock)


def _check_status(engine: Engine, status: int, body: bytes) -> None:
    """Raise a BackendError that says what to do about a status."""
    if status == 200:
        return
    fault = fault_of_status(status)
    said = " ".join(body[: 2 * _MAX_SHOWN_CHARS].decode("utf-8", "replace").split())
    key = engine.key_variable
    if status in (401, 403) and key:
        hint = f"the key in {key} is not accepted"
    elif status == 403:
        hint = "is json among the formats of its settings (search: formats:)?"
    elif status in (429, 432, 433):
        hint = "its rate or quota is used up; wait, or take another plan"
    elif 300 <= status < 400:
        hint = "it redirects, which is not followed with a key; use the address it leads to"
    else:
        hint = str(fault) if fault is not None else "an answer without results"
    raise BackendError(f"{engine.name}: status {status}: {hint} {said[:_MAX_SHOWN_CHARS]}".strip())


def _not_recorded(request: Request) -> Answer:
    what = request.get("fetch") or f"the search for {request.get('search')!r}"
    reason = f"Not recorded: {what:.200}. Only what was recorded can be searched and opened here."
    return Answer("", fault="not_recorded", reason=reason)
