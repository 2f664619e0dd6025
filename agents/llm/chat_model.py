"""A model of transformers that answers chat messages, to be served."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

import torch
from jinja2 import TemplateError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from ...corpora.errors import ConfigurationError
from .conversation import ChatCall
from .models import find_model
from .serve import Completion, Finish, RefusedError, Sampling
from .tiny import tiny_model

__all__ = ["TransformersChatModel", "parse_calls"]

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_TOOLS = (
    "You may call tools. They are described between <tools> and </tools>:\n<tools>\n{schemas}\n"
    '</tools>\nTo call one, write <tool_call>{{"name": ..., "arguments": {{...}}}}</tool_call>.'
)
_PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


class TransformersChatModel:
    """Answers chat messages with a causal language model.

    Tools go to the chat template, if it has a place for them; else they are described in the
    system message, as Hermes models know them. Calls are read from ``<tool_call>`` tags.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        name: What clients call it.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str
    ) -> None:
        self.name = name
        self._model = model.eval()
        self._tokenizer = tokenizer

    @classmethod
    def from_pretrained(cls, name: str) -> Self:
        """Load a model: a folder, a GGUF file, a hub name, ``smollm2-135m`` or ``tiny``.

        Raises:
            ConfigurationError: There is no such model, or it cannot be read.
        """
        if name == "tiny":
            return cls(*tiny_model(), name=name)
        source = find_model(name)
        try:
            tokenizer = AutoTokenizer.from_pretrained(source.path, **source.arguments)
            model = AutoModelForCausalLM.from_pretrained(source.path, **source.arguments)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"model {name!r} cannot be loaded: {error}") from error
        return cls(model, tokenizer, name=name)

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        sampling: Sampling,
    ) -> Completion:
        """Return the next message.

        Raises:
            RefusedError: The messages are too long, or the chat template refuses them.
        """
        prompt = self._tokenizer(self.lay_out(messages, tools), add_special_tokens=False)
        ids = list(prompt["input_ids"])
        limit = int(getattr(self._model.config, "max_position_embeddings", len(ids)))
        if len(ids) + sampling.max_tokens > limit:
            raise RefusedError(
                f"this model's maximum context length is {limit} tokens; the messages have "
                f"{len(ids)}, and {sampling.max_tokens} were asked for",
                code="context_length_exceeded",
            )
        written = self._write(ids, sampling)
        text = str(self._tokenizer.decode(written, skip_special_tokens=True))
        end = min((text.find(stop) for stop in sampling.stop if stop in text), default=None)
        is_over = end is not None or len(written) < sampling.max_tokens
        calls: tuple[ChatCall, ...] = ()
        text = text[:end]
        if tools and is_over:
            text, calls = parse_calls(text, sum(m.get("role") == "tool" for m in messages))
        finish: Finish = "length" if not is_over else "tool_calls" if calls else "stop"
        return Completion(text, calls, finish, len(ids), len(written))

    def _write(self, ids: Sequence[int], sampling: Sampling) -> list[int]:
        """Draw tokens up to an end; the last one may be the end token."""
        prompt = torch.tensor([ids], device=self._model.device)
        options: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            options = {"do_sample": True, "temperature": sampling.temperature, "top_k": 0}
        watch = _StopStrings(self._tokenizer, len(ids), sampling.stop)
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if sampling.seed is not None:
                stack.enter_context(torch.random.fork_rng())
                torch.manual_seed(sampling.seed)
            output = self._model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=sampling.max_tokens,
                pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id or 0,
                stopping_criteria=StoppingCriteriaList([watch]),
                **options,
            )
        return [int(token) for token in output[0, len(ids) :]]

    def lay_out(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> str:
        """Return the text that the model reads.

        Raises:
            RefusedError: The chat template refuses the messages.
        """
        template = self._tokenizer.chat_template or _PLAIN_TEMPLATE
        options: dict[str, Any] = {"chat_template": template}
        if "tools" in str(template):
            laid = [_with_read_arguments(message) for message in messages]
            options["tools"] = list(tools) or None
        else:
            laid = _in_hermes_words(messages, tools)
        try:
            text = self._tokenizer.apply_chat_template(
                laid, tokenize=False, add_generation_prompt=True, **options
            )
        except (TemplateError, TypeError, KeyError) as error:
            raise RefusedError(f"the chat template refuses the messages: {error}") from None
        return str(text)


class _StopStrings(StoppingCriteria):
    """Stops when the text written so far holds a stop string."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, prompt_tokens: int, stop: Sequence[str]
    ) -> None:
        self._tokenizer = tokenizer
        self._prompt_tokens = prompt_tokens
        self._stop = stop

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        written = input_ids[0, self._prompt_tokens :]
        text = self._tokenizer.decode(written, skip_special_tokens=True) if self._stop else ""
        is_over = any(stop in text for stop in self._stop)
        return torch.tensor([is_over], device=input_ids.device)


def parse_calls(text: str, first: int = 0) -> tuple[str, tuple[ChatCall, ...]]:
    """Return a reply's text without its calls, and the calls.

    A block that is no call stays in the text, for the agent to be told.

    Args:
        text: What a model wrote.
        first: The number in the first call's id.

    Example:
        >>> parse_calls('So: <tool_call>{"name": "search", "arguments": {"query": "x"}}')
        ('So:', (ChatCall(id='call_0', name='search', arguments='{"query": "x"}'),))
    """
    calls: list[ChatCall] = []

    def take(match: re.Match[str]) -> str:
        try:
            value = json.loads(match[1])
        except (ValueError, RecursionError):
            return match[0]
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return match[0]
        arguments = value.get("arguments", {})
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(ChatCall(f"call_{first + len(calls)}", value["name"], written))
        return ""

    rest = _CALL.sub(take, text)
    return rest.strip(), tuple(calls)


def _in_hermes_words(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Return the messages in the three roles that every template knows, tools put into words."""
    laid: list[dict[str, str]] = []
    if tools:
        schemas = "\n".join(json.dumps(tool) for tool in tools)
        laid.append({"role": "system", "content": _TOOLS.format(schemas=schemas)})
    for message in messages:
        role, text = str(message.get("role")), _text_of(message)
        for call in message.get("tool_calls") or ():
            text += f"\n<tool_call>{json.dumps(_read_call(call))}</tool_call>"
        if role == "tool":
            role, text = "user", f"<tool_response>\n{text}\n</tool_response>"
        if laid and laid[-1]["role"] == role:  # templates want them to take turns
            laid[-1]["content"] += f"\n\n{text}"
        else:
            laid.append({"role": role, "content": text.strip()})
    return laid


def _with_read_arguments(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as templates take it: the arguments of calls are objects."""
    laid = {**message, "content": _text_of(message)}
    if message.get("tool_calls"):
        laid["tool_calls"] = [
            {"type": "function", "id": call.get("id"), "function": _read_call(call)}
            for call in message["tool_calls"]
        ]
    return laid


def _text_of(message: Mapping[str, Any]) -> str:
    """Return a message's text, which may come as a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _read_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return name and arguments of a call that a client sends back.

    Raises:
        RefusedError: It is no call, or its arguments are no JSON.
    """
    try:
        function = call["function"]
        return {"name": function["name"], "arguments": json.loads(function["arguments"])}
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        fault = f"{type(error).__name__}: {error}"
        raise RefusedError(f"messages hold a tool call that cannot be read ({fault})") from None
