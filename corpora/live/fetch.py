"""Fetch pages: redirects one by one, robots.txt, cookies for one fetch only, text and no more."""

import asyncio
import http

import httpx

from ..errors import BackendError, PageError
from .addresses import AddressRules, clean_url
from .answers import Answer
from .bodies import check_is_text, decode_text
from .limits import Limits
from .robots import ALLOW_ALL, Robots
from .wire import Clock, Received, Wire

__all__ = ["Fetcher", "fault_of_status"]

_REDIRECTS = (301, 302, 303, 307, 308)
_ROBOTS_BYTES = 512_000
_ROBOTS_REDIRECTS = 5
_ROBOTS_SECONDS = 86_400.0
_MAX_HOSTS = 4_096
_ACCEPT = "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5"


class Fetcher:
    """Fetches pages by their addresses; belongs to the event loop that it is used in.

    Args:
        limits: What a fetch may cost, and how politely it goes about it.
        rules: Where it may go.
        user_agent: Who it says it is; its first word is what robots.txt knows it by.
    """

    def __init__(self, limits: Limits, rules: AddressRules, user_agent: str) -> None:
        self._limits = limits
        self._wire = Wire(limits, rules)
        self._user_agent = user_agent
        self._product = user_agent.split("/")[0].split(" ")[0]
        self._robots: dict[str, tuple[float, Robots]] = {}
        self._robots_locks: dict[str, asyncio.Lock] = {}

    async def aclose(self) -> None:
        """Close every connection."""
        await self._wire.aclose()

    async def fetch(self, url: str) -> Answer:
        """Return what is at an address, or the fault why nothing can be shown; never raises."""
        try:
            async with Clock(self._limits.total_s) as clock:
                return await self._follow(clean_url(url), clock)
        except TimeoutError:
            reason = f"The page did not come within {self._limits.total_s:g} seconds."
            return Answer(url, fault="timeout", reason=reason)
        except (PageError, BackendError) as error:
            return Answer.of_fault(url, error)

    async def _follow(self, url: httpx.URL, clock: Clock) -> Answer:
        cookies = httpx.Cookies()  # of this one fetch: nothing is kept for the next
        seen = {str(url)}
        for _ in range(self._limits.redirects + 1):
            await self._check_robots(url, clock)
            received = await self._get(url, cookies, clock)
            if received.status not in _REDIRECTS or "location" not in received.headers:
                return _answer(url, received)
            url = _next(url, received.headers["location"])
            if str(url) in seen and "set-cookie" not in received.headers:
                raise PageError("redirect_loop", "The address redirects in a circle.")
            seen.add(str(url))
        raise PageError(
            "redirect_loop", f"The address redirects more than {self._limits.redirects} times."
        )

    async def _get(self, url: httpx.URL, cookies: httpx.Cookies, clock: Clock) -> Received:
        request = self._request(url)
        cookies.set_cookie_header(request)
        received = await self._wire.send(lambda: request, clock, check_head=_check_head)
        cookies.extract_cookies(
            httpx.Response(received.status, headers=received.headers, request=request)
        )
        return received

    def _request(self, url: httpx.URL) -> httpx.Request:
        headers = {
            "user-agent": self._user_agent,
            "accept": _ACCEPT,
            "accept-language": "en,*;q=0.5",
            "accept-encoding": "gzip, deflate",
        }
        return httpx.Request("GET", url, headers=headers)

    async def _check_robots(self, url: httpx.URL, clock: Clock) -> None:
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        if len(self._robots_locks) > _MAX_HOSTS:
            self._robots_locks.clear()
            self._robots.clear()
        async with self._robots_locks.setdefault(origin, asyncio.Lock()):
            now = asyncio.get_running_loop().time()
            kept_until, robots = self._robots.get(origin, (now, ALLOW_ALL))
            if kept_until <= now:
                robots = await self._fetch_robots(url, clock)
                self._robots[origin] = now + _ROBOTS_SECONDS, robots
        if not robots.allows(url.raw_path.decode("ascii")):
            raise PageError("robots", f"{url.host} asks programs not to open this page.")

    async def _fetch_robots(self, url: httpx.URL, clock: Clock) -> Robots:
        at = url.copy_with(raw_path=b"/robots.txt")
        for _ in range(_ROBOTS_REDIRECTS + 1):
            request = self._request(at)
            received = await self._wire.send(lambda: request, clock, cut_bytes=_ROBOTS_BYTES)  # noqa: B023
            if received.status not in _REDIRECTS or "location" not in received.headers:
                break
            at = _next(at, received.headers["location"])
        if received.status == 429 or received.status >= 500:  # RFC 9309: then all is forbidden
            raise PageError(
                "robots",
                f"{url.host} does not say what programs may open (status {received.status}).",
            )
        if received.status != 200:
            return ALLOW_ALL
        return Robots.of(decode_text(received.body, ""), self._product)


def fault_of_status(status: int) -> PageError | None:
    """Return the error that a status stands for, or None."""
    if 200 <= status < 300:
        return None
    try:
        shown = f"{status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        shown = str(status)
    if status in (404, 410):
        return PageError("not_found", f"There is no page at this address ({shown}).")
    if status == 429:
        return PageError("rate_limited", f"The server wants no more requests for now ({shown}).")
    return PageError("http_error", f"The server does not show this page ({shown}).")


def _next(url: httpx.URL, location: str) -> httpx.URL:
    try:
        return clean_url(str(url.join(location)))
    except httpx.InvalidURL:
        raise PageError("bad_url", "The address redirects to something that is none.") from None


def _check_head(response: httpx.Response) -> None:
    if 200 <= response.status_code < 300:
        check_is_text(response.headers.get("content-type", ""))


def _answer(url: httpx.URL, received: Received) -> Answer:
    fault = fault_of_status(received.status)
    if fault is not None:
        raise fault
    content_type = received.headers.get("content-type", "")
    check_is_text(content_type, received.body)
    return Answer(str(url), content_type, received.body)
