"""A server that speaks OpenAI's chat completions, for one model on this machine.

It is made for tests, demonstrations and small runs: one reply is written at a time, and a
streamed reply is sent once it is written.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ...corpora.errors import ConfigurationError, MissingExtraError
from ..rollouts.trajectory import encodable
from .conversation import ChatCall

__all__ = ["ChatModel", "Completion", "Finish", "RefusedError", "Sampling", "create_app"]

_MAX_TOKENS = 256
_TEMPERATURE = 1.0
_PIECE_CHARS = 16
_JSON = "application/json"
_DONE = "data: [DONE]\n\n"

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is sampled.

    Attributes:
        max_tokens: Its longest length.
        stop: Strings that end it, and are no part of it.
        temperature: 0 takes the likeliest token each time.
        seed: Decides the draws; None for a new one each time.
    """

    max_tokens: int = _MAX_TOKENS
    stop: tuple[str, ...] = ()
    temperature: float = _TEMPERATURE
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a model.

    Attributes:
        text: What it wrote beside its calls, without the stop string.
        calls: Its tool calls.
        finish: Why it ended.
        prompt_tokens: How many tokens it read.
        completion_tokens: How many it wrote.
    """

    text: str
    calls: tuple[ChatCall, ...] = ()
    finish: Finish = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


class RefusedError(ConfigurationError):
    """Say why a request cannot be answered.

    Attributes:
        code: A stable name of the fault, as OpenAI's servers call it.
        status: The status of the answer.
    """

    def __init__(self, message: str, *, code: str = "invalid_request", status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class ChatModel(Protocol):
    """What can be served.

    Attributes:
        name: What clients call it.
    """

    name: str

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        sampling: Sampling,
    ) -> Completion:
        """Return the next message.

        Raises:
            RefusedError: The messages are too long, or cannot be laid out for the model.
        """


def create_app(model: ChatModel) -> Any:
    """Return the FastAPI application that serves a model under ``/v1``.

    Raises:
        MissingExtraError: FastAPI is not installed.
    """
    try:
        from fastapi import FastAPI, Request
        from fastapi.concurrency import run_in_threadpool
        from fastapi.responses import Response, StreamingResponse
    except ImportError:
        raise MissingExtraError("fastapi", "serve") from None
    app = FastAPI(title="seekgym", openapi_url=None)
    lock = threading.Lock()
    served = {"id": model.name, "object": "model", "created": 0, "owned_by": "seekgym"}

    def complete(request: "_Request") -> Completion:
        with lock:
            return model.complete(request.messages, request.tools, request.sampling)

    @app.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        return {"object": "list", "data": [served]}

    @app.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        try:
            asked = _read_request(await request.body(), model.name)
            completion = await run_in_threadpool(complete, asked)
        except RefusedError as error:
            return Response(json.dumps(_error_body(error)), error.status, media_type=_JSON)
        if asked.is_streaming:
            events = _stream(completion, model.name, with_usage=asked.with_usage)
            return StreamingResponse(events, media_type="text/event-stream")
        body = _completion_body(completion, model.name)
        return Response(json.dumps(body), media_type=_JSON)

    return app


@dataclass(frozen=True, slots=True)
class _Request:
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    sampling: Sampling
    is_streaming: bool
    with_usage: bool


def _read_request(raw: bytes, name: str) -> _Request:
    try:
        body = encodable(json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"the body is not JSON ({error})") from None
    if not isinstance(body, dict):
        raise RefusedError(f"the body must be an object, got {type(body).__name__}")
    if body.get("model") != name:
        wanted = body.get("model")
        message = f"there is no model {wanted!r} here; there is {name!r}"
        raise RefusedError(message, status=404, code="model_not_found")
    messages = _objects(body, "messages")
    if not messages:
        raise RefusedError("messages must hold at least one message")
    options = body.get("stream_options")
    return _Request(
        messages,
        _objects(body, "tools"),
        _read_sampling(body),
        body.get("stream") is True,
        isinstance(options, dict) and options.get("include_usage") is True,
    )


def _objects(body: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    values = body.get(field) or []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise RefusedError(f"{field} must be a list of objects")
    return values


def _read_sampling(body: Mapping[str, Any]) -> Sampling:
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is None:
        limit = _MAX_TOKENS
    if type(limit) is not int or limit < 1:
        raise RefusedError(f"max_tokens must be a whole number of at least 1, got {limit!r}")
    stop = body.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or not all(isinstance(text, str) and text for text in stop):
        raise RefusedError("stop must be a text or a list of texts, none of them empty")
    temperature = body.get("temperature")
    temperature = _TEMPERATURE if temperature is None else temperature
    if type(temperature) not in (int, float) or not 0 <= temperature <= 100:
        raise RefusedError(f"temperature must be a number from 0 to 100, got {temperature!r}")
    seed = body.get("seed")
    if seed is not None and type(seed) is not int:
        raise RefusedError(f"seed must be a whole number, got {seed!r}")
    return Sampling(limit, tuple(stop), float(temperature), seed)


def _error_body(error: RefusedError) -> dict[str, Any]:
    kind = "invalid_request_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": error.code}}


def _completion_body(completion: Completion, name: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": completion.text}
    if completion.calls:
        message["tool_calls"] = [_wire_call(call) for call in completion.calls]
    choice = {"index": 0, "message": message, "finish_reason": completion.finish}
    return _head(name, "chat.completion") | {"choices": [choice], "usage": _usage(completion)}


def _stream(completion: Completion, name: str, *, with_usage: bool) -> Iterator[str]:
    """Give the events of a streamed reply."""
    head = _head(name, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(completion.text)]
    for index, call in enumerate(completion.calls):
        wire = _wire_call(call)
        wire["function"] = {"name": call.name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, **wire}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(call.arguments)
        ]
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield _event(head | {"choices": [choice]})
    last = {"index": 0, "delta": {}, "finish_reason": completion.finish}
    yield _event(head | {"choices": [last]})
    if with_usage:
        yield _event(head | {"choices": [], "usage": _usage(completion)})
    yield _DONE


def _head(name: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-0", "object": kind, "created": 0, "model": name}


def _usage(completion: Completion) -> dict[str, int]:
    return {
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "total_tokens": completion.prompt_tokens + completion.completion_tokens,
    }


def _wire_call(call: ChatCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS)]


def _event(body: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(body)}\n\n"
