"""An OpenAI-compatible server as a policy reaches it: requests, faults, waiting, counting."""

import asyncio
import email.utils
import json
import math
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...corpora.errors import ConfigurationError, MissingExtraError
from ...corpora.text import replace_surrogates
from ...envs.rules import check_at_least
from .conversation import ChatCall, ChatReply

__all__ = ["ChatFault", "Endpoint", "Prices", "Retries", "Usage"]

_OVERFLOW = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "reduce the length",
)
_FILTERED = ("content_filter", "content management policy")
_MAX_SHOWN_CHARS = 300
_NO_KEY = "no-key"  # the client wants some


@dataclass(frozen=True, slots=True)
class Retries:
    """How a request that failed by no fault of its own is sent again.

    The n-th wait is ``first_wait_s * 2**(n - 1)``, at most ``longest_wait_s``, of which a random
    half to whole is waited; never less than the server's ``Retry-After``. A server that asks for
    more than ``longest_wait_s`` is not asked again.

    Attributes:
        count: How often a request is sent again; 0 for never.
        first_wait_s: The first wait, in seconds.
        longest_wait_s: The longest wait, in seconds.
    """

    count: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0

    def __post_init__(self) -> None:
        """Check the range of each value."""
        check_at_least("retries.count", self.count, 0)
        for name in ("first_wait_s", "longest_wait_s"):
            if not 0 <= getattr(self, name) < math.inf:
                value = getattr(self, name)
                raise ConfigurationError(f"retries.{name} must be at least 0, got {value!r}")

    def wait_s(self, attempt: int, generator: np.random.Generator) -> float:
        """Return how long to wait after an attempt, counted from 1."""
        longest = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return longest * float(generator.uniform(0.5, 1.0))


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost.

    Attributes:
        prompt: Tokens read.
        completion: Tokens written.
        cached: Tokens read that the server still held; as ``prompt`` if None.
    """

    prompt: float
    completion: float
    cached: float | None = None


@dataclass(slots=True)
class Usage:
    """What an episode has cost so far.

    Tokens of requests that broke off are not known, and not counted.
    """

    requests: int = 0
    retries: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    is_complete: bool = True

    def add(self, reported: Any) -> None:
        """Count the ``usage`` of one completion."""
        prompt = getattr(reported, "prompt_tokens", None)
        completion = getattr(reported, "completion_tokens", None)
        if not isinstance(prompt, int) or not isinstance(completion, int):
            self.is_complete = False
            return
        details = getattr(reported, "prompt_tokens_details", None)
        counts = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "cached_tokens": getattr(details, "cached_tokens", None) or 0,
        }
        self.tokens = {name: self.tokens.get(name, 0) + count for name, count in counts.items()}

    def totals(self, prices: Prices | None) -> dict[str, float]:
        """Return the counts; without tokens and cost if the server left some of them out."""
        totals: dict[str, float] = {"requests": self.requests, "retries": self.retries}
        if not self.is_complete or not self.tokens:
            return totals
        totals |= self.tokens
        if prices is not None:
            cached = self.tokens["cached_tokens"]
            price = prices.prompt if prices.cached is None else prices.cached
            totals["cost"] = (
                (self.tokens["prompt_tokens"] - cached) * prices.prompt
                + cached * price
                + self.tokens["completion_tokens"] * prices.completion
            ) / 1e6
        return totals


class ChatFault(Exception):
    """What went wrong with a request.

    Attributes:
        reach: What it ends: nothing yet (``retry``), one ``episode``, or the whole ``run``;
            ``unless_answered`` ends the run if the server has answered no request so far, and
            the episode otherwise.
        reason: In words, with the way out.
        wait_s: How long the server asks to wait.
    """

    def __init__(
        self,
        reach: Literal["retry", "episode", "unless_answered", "run"],
        reason: str,
        *,
        is_reached: bool = True,
        wait_s: float = 0.0,
    ) -> None:
        super().__init__(reason)
        self.reach = reach
        self.reason = reason
        self.is_reached = is_reached
        self.wait_s = wait_s


class Endpoint:
    """A server and a model on it. Made in a running event loop, used in that one, and closed.

    Requests are sent again by this class alone: the client's own retries are off, since they
    leave out answers that break off half way, and draw their jitter from a global generator.

    Sent again are requests that were answered by 408, 409, 429 or 5xx, whose connection was
    refused or dropped, also in the middle of an answer, that took too long, or whose answer held
    no message.

    Args:
        base_url: The address up to ``/v1``.
        model: The model's name there.
        api_key: The key, never part of a message; None for a server that asks for none.
        timeout_s: The longest that one request may take, whole answer included.
        retries: How often and when requests are sent again.
        is_streaming: Whether answers are asked for in pieces.

    Raises:
        MissingExtraError: The client is not installed.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None,
        timeout_s: float,
        retries: Retries,
        is_streaming: bool = False,
    ) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtraError("openai", "llm") from None
        self._openai = openai
        self._client = openai.AsyncOpenAI(
            api_key=api_key or _NO_KEY, base_url=base_url, max_retries=0, timeout=None
        )
        self._shown_url = _without_password(base_url)
        self._where = f"model {model!r} at {self._shown_url}"
        self._model = model
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._retries = retries
        self._is_streaming = is_streaming
        self.has_answered = False

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def ask(
        self, body: Mapping[str, Any], usage: Usage, generator: np.random.Generator
    ) -> ChatReply:
        """Return the model's next message.

        Args:
            body: The fields of a chat completion, apart from the model.
            usage: Counts what it costs.
            generator: Draws the jitter of the waits.

        Raises:
            ChatFault: There is no answer, and it would be no use to ask again.
        """
        attempt = 0
        while True:
            attempt += 1
            usage.requests += 1
            try:
                reply = await self._ask_once(body, usage)
            except ChatFault as fault:
                if fault.reach == "unless_answered":
                    fault.reach = "episode" if self.has_answered else "run"
                if fault.reach != "retry":
                    raise
                self._check_patience(fault, attempt)
                usage.retries += 1
                wait_s = self._retries.wait_s(attempt, generator)
                await asyncio.sleep(max(wait_s, fault.wait_s))
            else:
                self.has_answered = True
                return reply

    def _check_patience(self, fault: ChatFault, attempt: int) -> None:
        """Raise the fault anew if the request is not to be sent again."""
        is_too_long = fault.wait_s > self._retries.longest_wait_s
        if attempt <= self._retries.count and not is_too_long:
            return
        asked = f", which asks to wait {fault.wait_s:.0f} s" if is_too_long else ""
        reason = f"{fault.reason} (asked {attempt} times{asked})"
        is_lost = not fault.is_reached and not self.has_answered
        raise ChatFault("run" if is_lost else "episode", reason) from fault

    async def _ask_once(self, body: Mapping[str, Any], usage: Usage) -> ChatReply:
        openai = self._openai
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._completion(body, usage)
        except (TimeoutError, openai.APITimeoutError):
            reason = f"{self._where} took longer than {self._timeout_s:g} s; raise timeout_s"
            raise ChatFault("retry", reason) from None
        except openai.APIStatusError as error:
            raise self._status_fault(error) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            reason = f"{self._where}: the connection failed ({type(cause).__name__}: {cause})"
            raise ChatFault("retry", self._clean(reason), is_reached=False) from None
        except openai.APIError as error:  # an error in the middle of a stream
            reason = f"{self._where} broke off: {error.message}"
            raise ChatFault("retry", self._clean(reason)) from None
        except (ValueError, AttributeError, TypeError) as error:  # no JSON, or not of this kind
            reason = (
                f"{self._where} sent no chat completion ({type(error).__name__}: {error}); "
                "does base_url end in /v1?"
            )
            raise ChatFault("retry", self._clean(reason), is_reached=False) from None

    async def _completion(self, body: Mapping[str, Any], usage: Usage) -> ChatReply:
        create = self._client.chat.completions.create
        fields: dict[str, Any] = {"model": self._model, "messages": body["messages"]}
        rest = {name: value for name, value in body.items() if name != "messages"}
        if self._is_streaming:
            rest = {"stream_options": {"include_usage": True}} | rest
            stream = await create(**fields, stream=True, extra_body=rest)
            return await self._read_stream(stream, usage)
        completion = await create(**fields, extra_body=rest)
        if not completion.choices or completion.choices[0].message is None:
            raise ChatFault("retry", f"{self._where} sent an answer without a message")
        choice = completion.choices[0]
        calls = tuple(
            ChatCall(call.id or "", call.function.name or "", _arguments(call.function.arguments))
            for call in choice.message.tool_calls or ()
        )
        reply = ChatReply(
            _text(choice.message.content) or _text(choice.message.refusal),
            calls,
            choice.finish_reason or "stop",
            _matched_stop(choice),
        )
        usage.add(completion.usage)
        return reply

    async def _read_stream(self, stream: Any, usage: Usage) -> ChatReply:
        """Put an answer together; one without a ``finish_reason`` was dropped half way."""
        texts: list[str] = []
        calls: dict[int, list[str]] = {}
        finish, stop, reported = None, None, None
        async with stream:
            async for chunk in stream:
                reported = chunk.usage or reported
                for choice in (chunk.choices or ())[:1]:
                    texts.append(_text(choice.delta.content) or _text(choice.delta.refusal))
                    for call in choice.delta.tool_calls or ():
                        _add_piece(calls.setdefault(call.index, ["", "", ""]), call)
                    finish = choice.finish_reason or finish
                    stop = _matched_stop(choice) or stop
        if finish is None:
            raise ChatFault("retry", f"{self._where} broke off in the middle of its answer")
        usage.add(reported)
        read = tuple(ChatCall(*calls[index]) for index in sorted(calls))
        return ChatReply("".join(texts), read, finish, stop)

    def _status_fault(self, error: Any) -> ChatFault:
        """Return what an answer with an error status means."""
        status, code = int(error.status_code), str(error.code or "")
        said = f"{self._where} answered {status}: {self._message(error)}"
        if code == "insufficient_quota" or status == 402:
            return ChatFault("run", self._clean(f"{said}; the account has no money left"))
        if status in (408, 409, 429) or (status >= 500 and status != 501):
            return ChatFault("retry", self._clean(said), wait_s=_retry_after(error.response))
        if status in (401, 403):
            way = "pass api_key=, or set OPENAI_API_KEY, to a key that this server takes"
            return ChatFault("run", self._clean(f"{said}; {way}"))
        if status == 404:
            way = (
                f"look at {self._shown_url.rstrip('/')}/models for its models; base_url ends in /v1"
            )
            return ChatFault("run", self._clean(f"{said}; {way}"))
        text = f"{code} {said}".lower()
        if status == 413 or any(words in text for words in _OVERFLOW):
            way = "lower max_observation_chars or max_turns, or serve it with a longer context"
            return ChatFault("episode", self._clean(f"context overflow: {said}; {way}"))
        if any(words in text for words in _FILTERED):
            return ChatFault("episode", self._clean(f"content filter: {said}"))
        return ChatFault("unless_answered", self._clean(said))

    def _message(self, error: Any) -> str:
        """Return the server's own words, in one line."""
        body = error.body
        words = body.get("message") if isinstance(body, Mapping) else body
        if not isinstance(words, str) or not words:
            words = json.dumps(body) if body else str(error.message)
        return " ".join(words.split())[:_MAX_SHOWN_CHARS]

    def _clean(self, text: str) -> str:
        """Return text without the key, which some servers repeat, and that can be encoded."""
        shown = text.replace(self._api_key, "(the key)") if self._api_key else text
        return replace_surrogates(shown)


def _without_password(url: str) -> str:
    """Return an address as it may be shown."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _add_piece(call: list[str], piece: Any) -> None:
    """Add a piece of a streamed call: id and name come once, arguments bit by bit."""
    call[0] = call[0] or piece.id or ""
    if piece.function is not None:
        call[1] = call[1] or piece.function.name or ""
        call[2] += _arguments(piece.function.arguments)


def _text(value: Any) -> str:
    """Return a text that may be left out; anything else is no chat completion."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"a text is needed, got {type(value).__name__}")
    return value or ""


def _arguments(value: Any) -> str:
    """Return a call's arguments as a text; some servers send them as an object."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _matched_stop(choice: Any) -> str | None:
    """Return the stop string that ended an answer: a field that some servers add."""
    stop = (choice.model_extra or {}).get("stop_reason")
    return stop if isinstance(stop, str) else None


def _retry_after(response: Any) -> float:
    """Return how many seconds a server asks to wait; 0 if it does not say."""
    for header, seconds in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(response.headers.get(header, "")) * seconds
        except ValueError:
            continue
        return wait_s if wait_s >= 0 else 0.0
    date = email.utils.parsedate_tz(response.headers.get("retry-after", ""))
    return 0.0 if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())
