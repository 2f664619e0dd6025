"""Requests as they go out: in turn, bounded in time and size, and sent again where that helps."""

import asyncio
import email.utils
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import NamedTuple, Self

import httpcore
import httpx

from ..errors import PageError
from .addresses import AddressRules
from .bodies import Inflater, too_large
from .limits import Limits
from .transport import CheckedTransport

__all__ = ["Clock", "Received", "Wire"]

_SENT_AGAIN = (429, 500, 502, 503, 504)
_MAX_HOSTS = 4_096
_BROKEN = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ConnectTimeout)


class Received(NamedTuple):
    """What came back: status, headers, and the body, decompressed."""

    status: int
    headers: httpx.Headers
    body: bytes


class Clock:
    """How much of its time a fetch has left; stands still while the fetch waits for its turn.

    Use as ``async with Clock(seconds) as clock``; when the time is over, the block is left with
    a ``TimeoutError``.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> Self:
        """Start."""
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; raise the ``TimeoutError`` if the time is over."""
        await self._timeout.__aexit__(kind, error, trace)

    @property
    def left_s(self) -> float:
        """The seconds that are left."""
        when = self._timeout.when()
        return self._left if when is None else when - asyncio.get_running_loop().time()

    @asynccontextmanager
    async def standing_still(self) -> AsyncIterator[None]:
        """Let no time pass."""
        self._left = self.left_s
        self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)


class Wire:
    """Sends requests; belongs to the event loop that it is used in.

    Args:
        limits: What a request may cost, and how politely it goes out.
        rules: Where it may go; None for anywhere.
    """

    def __init__(self, limits: Limits, rules: AddressRules | None) -> None:
        self.limits = limits
        self._transport = CheckedTransport(rules, limits.connect_s)
        self._turns: dict[str, _Turns] = {}

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()

    async def send(
        self,
        request: Callable[[], httpx.Request],
        clock: Clock,
        *,
        check_head: Callable[[httpx.Response], None] = lambda response: None,
        cut_bytes: int | None = None,
    ) -> Received:
        """Send a request, again if need be, and return what came of it.

        Args:
            request: Gives the request, anew for each attempt.
            clock: The time that is left.
            check_head: Raises if the body is not wanted; it is then not read.
            cut_bytes: If given, a longer body is cut there; else it is an error.

        Raises:
            PageError: The body is too long or broken, or there was no answer.
            TimeoutError: The time is over.
        """
        wait_s = self.limits.first_wait_s
        for attempt in range(self.limits.retries + 1):
            sent = request()
            turns = self._turns_of(sent.url)
            async with turns.turn(clock):
                outcome = await self._attempt(sent, check_head, cut_bytes)
            asked_s = _asked_wait_s(outcome)
            if asked_s is None or attempt == self.limits.retries:
                break
            pause_s = max(wait_s, asked_s)
            if pause_s >= clock.left_s:
                break
            if asked_s:
                turns.postpone(pause_s)
            await asyncio.sleep(pause_s)
            wait_s *= 2
        if isinstance(outcome, PageError):
            raise outcome
        return outcome

    def _turns_of(self, url: httpx.URL) -> "_Turns":
        if len(self._turns) > _MAX_HOSTS:
            self._turns.clear()
        return self._turns.setdefault(url.host, _Turns(self.limits))

    async def _attempt(
        self,
        request: httpx.Request,
        check_head: Callable[[httpx.Response], None],
        cut_bytes: int | None,
    ) -> Received | PageError:
        """Return what came back; an error where the connection broke."""
        try:
            return await self._receive(request, check_head, cut_bytes)
        except _BROKEN as error:
            kind = type(error).__name__
            return PageError("unreachable", f"{request.url.host} gave no whole answer ({kind}).")

    async def _receive(
        self,
        request: httpx.Request,
        check_head: Callable[[httpx.Response], None],
        cut_bytes: int | None,
    ) -> Received:
        response = await self._transport.handle_async_request(request)
        try:
            if response.status_code in _SENT_AGAIN:
                return Received(response.status_code, response.headers, b"")
            check_head(response)
            body = await self._read(response, cut_bytes)
        finally:
            await response.aclose()
        return Received(response.status_code, response.headers, body)

    async def _read(self, response: httpx.Response, cut_bytes: int | None) -> bytes:
        most = self.limits.max_bytes if cut_bytes is None else cut_bytes
        if cut_bytes is None and _length(response.headers) > most:
            raise too_large(most)
        inflater = Inflater(response.headers.get("content-encoding", ""), most)
        pieces = []
        try:
            async for piece in response.aiter_raw():
                pieces.append(inflater.feed(piece))
            inflater.check_end()
        except PageError as error:
            if cut_bytes is None or error.code != "too_large":
                raise
        return b"".join(pieces)


class _Turns:
    """The turns of requests to one host: so many at once, so long one after the other."""

    def __init__(self, limits: Limits) -> None:
        self._places = asyncio.Semaphore(limits.at_once)
        self._delay_s = limits.delay_s
        self._next = -math.inf

    @asynccontextmanager
    async def turn(self, clock: Clock) -> AsyncIterator[None]:
        async with clock.standing_still():
            await self._places.acquire()
        try:
            async with clock.standing_still():
                await self._wait()
            yield
        finally:
            self._places.release()

    async def _wait(self) -> None:
        now = asyncio.get_running_loop().time()
        start = max(now, self._next)
        self._next = start + self._delay_s
        if start > now:
            await asyncio.sleep(start - now)

    def postpone(self, seconds: float) -> None:
        """Let nobody ask this host for some seconds."""
        self._next = max(self._next, asyncio.get_running_loop().time() + seconds)


def _asked_wait_s(outcome: Received | PageError) -> float | None:
    """Return the seconds that a server asks for before a request is sent again; None if never."""
    if isinstance(outcome, PageError):
        return 0.0
    return _retry_after_s(outcome.headers) if outcome.status in _SENT_AGAIN else None


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Return how many seconds a server asks to be left alone; 0 if it does not say."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:10])
    try:
        at = email.utils.parsedate_to_datetime(value)
        return max(0.0, at.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _length(headers: Mapping[str, str]) -> int:
    value = headers.get("content-length", "")
    return int(value[:18]) if value.isascii() and value.isdigit() else 0
