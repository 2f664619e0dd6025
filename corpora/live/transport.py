"""Connections that go to the very address that was checked.

A host's name is resolved once, when a connection is opened, and the connection goes to what came
of it: there is no second look-up that a name server could answer otherwise. The name stays what
``Host`` and the certificate are about.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore
import httpx

from .addresses import AddressRules, resolve

__all__ = ["CheckedTransport"]


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
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=256,
            max_keepalive_connections=32,
            keepalive_expiry=5.0,
            http1=True,
            http2=True,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, whose body is still to be read."""
        url = request.url
        assert isinstance(request.stream, httpx.AsyncByteStream)
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions={"timeout": self._timeouts},
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.aiter_stream():
            yield piece

    async def aclose(self) -> None:
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
