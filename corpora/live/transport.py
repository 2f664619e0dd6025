"""Connections that go to the very address that was checked.

A host's name is resolved once, when a connection is opened, and the connection goes to what came
of it: there is no second look-up that a name server could answer otherwise. The name stays what
``Host`` and the certificate are about.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any
from zlib import crc32

import httpcore
import httpx

from .addresses import AddressRules, resolve

__all__ = ["CheckedTransport"]

# A pool looks at all its connections for each request, so that one for all would spend most of
# its time on that. The requests to one host share a pool, and with it connections, four at a time.
_POOLS = 32
_SHARED_BY = 4


class CheckedTransport(httpx.AsyncBaseTransport):
    """A transport of httpx over connections to checked addresses; speaks HTTP/1.1 and HTTP/2.

    It keeps no cookies, follows no redirects and reads no proxies from the environment.

    Args:
        rules: Where it may connect; None for anywhere.
        connect_s: The longest that connecting to one address takes.
    """

    def __init__(self, rules: AddressRules | None, connect_s: float) -> None:
        backend = httpcore.AnyIOBackend() if rules is None else _CheckedBackend(rules)
        self._timeouts = {"connect": connect_s}
        context = httpx.create_ssl_context()
        self._pools = [
            httpcore.AsyncConnectionPool(
                ssl_context=context,
                max_connections=None,
                max_keepalive_connections=4,
                keepalive_expiry=5.0,
                http1=True,
                http2=True,
                network_backend=backend,
            )
            for _ in range(_POOLS)
        ]
        self._under_way: Counter[bytes] = Counter()  # requests, by host

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, whose body is still to be read."""
        url, host = request.url, request.url.raw_host
        assert isinstance(request.stream, httpx.AsyncByteStream)
        pool = self._pools[(crc32(host) + self._under_way[host] // _SHARED_BY) % _POOLS]
        self._under_way[host] += 1
        try:
            answer = await pool.handle_async_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(
                        scheme=url.raw_scheme, host=host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions={"timeout": self._timeouts},
                )
            )
        except BaseException:
            self._forget(host)
            raise
        body = _Body(answer, lambda: self._forget(host))
        return httpx.Response(answer.status, headers=answer.headers, stream=body)

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self._pools:
            await pool.aclose()

    def _forget(self, host: bytes) -> None:
        self._under_way[host] -= 1
        if not self._under_way[host]:
            del self._under_way[host]


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response, on_closed: Callable[[], None]) -> None:
        self._answer = answer
        self._on_closed = on_closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.aiter_stream():
            yield piece

    async def aclose(self) -> None:
        self._on_closed()
        await self._answer.aclose()


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a name, checks what came, and connects to just that."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await resolve(host, port, self._rules)
        for position, address in enumerate(addresses):
            try:
                return await self._backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if position == len(addresses) - 1:
                    raise
        raise httpcore.ConnectError(f"{host} has no address")
