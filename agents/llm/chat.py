"""A policy that plays through any OpenAI-compatible server."""

import asyncio
import concurrent.futures
import math
import os
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ...corpora.errors import BackendError, ConfigurationError, raise_unknown
from ...envs.protocols import PROTOCOLS
from ...envs.rules import check_at_least
from ...envs.schemas import openai_schema
from ..policy import Policy
from ..rollouts.running import RunningEpisode
from ..rollouts.trajectory import Trajectory
from .conversation import messages_of, reply_of
from .endpoint import ChatFault, Endpoint, Prices, Retries, Usage

__all__ = ["ChatPolicy"]

_RETRIES = Retries()
_MAX_SEED = 2**31 - 1


class ChatPolicy(Policy):
    """Plays through a server that speaks OpenAI's chat completions: any model there.

    With ``protocol="tools"`` the model calls tools as the server offers them, and this is what
    becomes of a message:

    - One call: it is run, and its result is the tool message.
    - Several calls: the first whose arguments can be read is run; the model is told so in its
      result, and each other call is answered by a tool message that says it was not run. The
      turn is not well formed.
    - Arguments that are no JSON object: an invalid call, kept as the text that it was. In the
      next request they stand as ``{"malformed": text}``, since servers parse them.
    - No call: the text is an invalid move; what the environment says of it is a user message.

    With a text protocol the model's text is the action. The protocol's stop strings are sent;
    servers take them off the text, so the one that completes a call is put back.

    A message that the limit on tokens or a content filter has cut off is an invalid move,
    whatever it holds.

    A request that fails is sent again, as ``Retries`` says. If that is no use, its episode is
    lost: ``outcome["valid"]`` is False and ``outcome["reason"]`` says why, and the run goes on;
    a context that overflows loses its episode, too. A key or a model that the server does not
    take, a server that cannot be reached at all, and any other refusal before the first answer,
    end the run, once the episodes that are being played have ended. What is sampled depends on
    the server; ``seed`` is sent for those that heed it.

    Args:
        base_url: The server's address, up to ``/v1``.
        model: The model's name there.
        protocol: ``tools``, or a text protocol: ``search-r1``, ``hermes``, ``react``.
        api_key: The key; ``OPENAI_API_KEY`` of the environment if None.
        concurrency: How many episodes are played at once.
        max_tokens: The longest reply; the server's own limit if None.
        temperature: Of sampling; the server's own if None.
        extra: Further fields of each request, by name; None leaves out a field.
        timeout_s: The longest that one request may take.
        retries: How often and when a request is sent again.
        prices: What tokens cost, for ``usage["cost"]``.
        stream: Whether to ask for answers in pieces, for servers whose proxies cut off silence.

    Raises:
        ConfigurationError: An argument is out of its range.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        protocol: str = "tools",
        api_key: str | None = None,
        concurrency: int = 16,
        max_tokens: int | None = 1024,
        temperature: float | None = 1.0,
        extra: Mapping[str, Any] | None = None,
        timeout_s: float = 120.0,
        retries: Retries = _RETRIES,
        prices: Prices | None = None,
        stream: bool = False,
    ) -> None:
        _check_address(base_url)
        if not model:
            raise ConfigurationError("model must name one that the server has, got ''")
        if protocol != "tools" and protocol not in PROTOCOLS:
            raise_unknown("protocol", protocol, ["tools", *PROTOCOLS])
        check_at_least("concurrency", concurrency, 1)
        if max_tokens is not None:
            check_at_least("max_tokens", max_tokens, 1)
        if temperature is not None and not 0 <= temperature < math.inf:
            raise ConfigurationError(f"temperature must be at least 0, got {temperature!r}")
        if not 0 < timeout_s < math.inf:
            raise ConfigurationError(f"timeout_s must be more than 0, got {timeout_s!r}")
        self.name = f"chat {model}"
        self.protocol = None if protocol == "tools" else protocol
        self._base_url = base_url
        self._model = model
        self._api_key = api_key
        self._concurrency = concurrency
        self._sampling = {"max_tokens": max_tokens, "temperature": temperature}
        self._extra = dict(extra or {})
        self._timeout_s = timeout_s
        self._retries = retries
        self._prices = prices
        self._is_streaming = stream

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its replies: not where the server stands, nor how often it is asked."""
        return super().identity | self._sampling | self._extra

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play episodes, as many at once as ``concurrency`` says; give each as it ends.

        Raises:
            BackendError: The server refuses every request, or cannot be reached.
        """
        with _event_loop() as loop:
            endpoint = asyncio.run_coroutine_threadsafe(self._connect(), loop).result()
            running: dict[concurrent.futures.Future[Trajectory], int] = {}
            fault: ChatFault | None = None
            try:
                while True:
                    while fault is None and len(running) < self._concurrency:
                        episode = next(episodes, None)
                        if episode is None:
                            break
                        play = self._play(episode, endpoint)
                        future = asyncio.run_coroutine_threadsafe(play, loop)
                        running[future] = episode.plan.order
                    if not running:
                        break
                    done, _ = concurrent.futures.wait(running, return_when="FIRST_COMPLETED")
                    for future in sorted(done, key=running.__getitem__):
                        del running[future]
                        error = future.exception()
                        if isinstance(error, ChatFault):
                            fault = fault or error
                        else:
                            yield future.result()
            finally:
                for future in running:
                    future.cancel()
                asyncio.run_coroutine_threadsafe(endpoint.close(), loop).result()
            if fault is not None:
                raise BackendError(fault.reason)

    async def _connect(self) -> Endpoint:
        return Endpoint(
            self._base_url,
            self._model,
            api_key=self._api_key or os.environ.get("OPENAI_API_KEY"),
            timeout_s=self._timeout_s,
            retries=self._retries,
            is_streaming=self._is_streaming,
        )

    async def _play(self, episode: RunningEpisode, endpoint: Endpoint) -> Trajectory:
        """Play one episode; raises a ChatFault that ends the run."""
        usage = Usage()
        jitter = np.random.default_rng(np.random.SeedSequence([*episode.plan.entropy, 0]))
        while episode.may_go_on:
            written = usage.tokens.get("completion_tokens", 0)
            try:
                reply = await endpoint.ask(self._request(episode), usage, jitter)
            except ChatFault as fault:
                if fault.reach == "run":
                    raise
                return episode.finish(usage=usage.totals(self._prices), failure=fault.reason)
            sent = reply_of(reply, episode.protocol)
            written = usage.tokens.get("completion_tokens", 0) - written
            await asyncio.to_thread(episode.send, replace(sent, tokens=written))
        return episode.finish(usage=usage.totals(self._prices))

    def _request(self, episode: RunningEpisode) -> dict[str, Any]:
        """Return the fields of the next request, apart from the model."""
        entropy = [*episode.plan.entropy, 1, len(episode.turns)]
        seed = np.random.SeedSequence(entropy).generate_state(1)[0]
        fields: dict[str, Any] = {
            "messages": messages_of(episode),
            "seed": int(seed) & _MAX_SEED,
            **self._sampling,
        }
        if episode.protocol is None:
            fields["tools"] = [openai_schema(tool) for tool in episode.tools]
        else:
            fields["stop"] = list(episode.protocol.stop)
        fields |= self._extra
        return {name: value for name, value in fields.items() if value is not None}


def _check_address(base_url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(base_url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigurationError(
            f"base_url must be an address such as http://127.0.0.1:8000/v1, got {base_url!r}"
        )


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own, as the caller's thread may run one already."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="seekgym-chat", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_wind_up(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _wind_up() -> None:
    """Wait for what was cancelled, and for the threads that play turns."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
