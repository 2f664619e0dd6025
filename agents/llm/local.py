"""A policy that is a language model on this machine."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ...corpora.errors import ConfigurationError, TokenError, raise_unknown
from ...envs.protocols import PROTOCOLS, Blank, Form, Protocol
from ...envs.rules import check_at_least
from ..policy import Policy
from ..rollouts.running import RunningEpisode
from ..rollouts.trajectory import Trajectory
from .constraint import Guide
from .context import Compaction, get_compaction
from .decoder import Decoder
from .formats import Format
from .loading import (
    check_vocabulary,
    load_model,
    save_options,
    saved_options,
    weights_fingerprint,
)
from .sampling import Sampler, log_softmax
from .scoring import check_log_probs, evaluation_mode
from .stops import StopWatch
from .talk import Limits, Talk

__all__ = ["LocalPolicy"]

_DEFAULTS: dict[str, dict[str, Any]] = {
    "smollm2-135m": {"is_constrained": True},  # it ignores every protocol's tags by itself
    "tiny": {"max_context": 2048},
}
_CHECK_EVERY = 32
_BLANK_TOKENS = 24


@dataclass
class _Slot:
    """A place in the batch, with the episode that holds it."""

    talk: Talk
    watch: StopWatch


class LocalPolicy(Policy):
    """Plays with a causal language model of transformers, many episodes in one batch.

    Each episode has its own growing key-value cache: no token is read twice. A slot that falls
    free takes the next episode at once. A trajectory's ``segments`` hold the ids that the model
    read and drew, with the log-probabilities at drawing; those of the first episode and of every
    32nd after it are recomputed, and a difference is an error.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        name: What lists and reports call it.
        protocol: The text protocol that it speaks.
        max_context: The longest context, in tokens.
        max_new_tokens: The longest reply.
        temperature: Of sampling; 0 takes the most probable token.
        top_k: Draw only from so many most probable tokens; 0 for no limit.
        top_p: Draw only from the most probable tokens that together have this probability.
        batch_size: How many episodes play at once.
        is_constrained: Whether it can write nothing but valid calls.
        compaction: What to do when the context is full: ``drop-oldest``, ``keep-last``,
            ``summarize``, or a ``Compaction``.
        has_template: Whether to use the chat template; by default if there is one.
        has_instructions: Whether it reads the protocol's instructions; a model that was trained
            to play knows them.

    Raises:
        ConfigurationError: An argument is out of range or unknown.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "local",
        protocol: str = "hermes",
        max_context: int = 4096,
        max_new_tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        batch_size: int = 16,
        is_constrained: bool = False,
        compaction: str | Compaction = "drop-oldest",
        has_template: bool | None = None,
        has_instructions: bool = True,
    ) -> None:
        check_at_least("max_new_tokens", max_new_tokens, 1)
        check_vocabulary(model, tokenizer)
        check_at_least("batch_size", batch_size, 1)
        if protocol not in PROTOCOLS:
            raise_unknown("protocol", protocol, PROTOCOLS)
        _check_context(model, max_context)
        self.name = name
        self.protocol: str = protocol
        self.model = model
        self.tokenizer = tokenizer
        self.sampler = Sampler(temperature, top_k, top_p)
        self.batch_size = batch_size
        self.is_constrained = is_constrained
        self.has_instructions = has_instructions
        self.layout = Format(tokenizer, has_template=has_template)
        self.limits = Limits(max_context, max_new_tokens, get_compaction(compaction))
        self._texts = _token_texts(tokenizer, self.layout)
        self._watches: dict[tuple[str, ...], StopWatch] = {}
        self._eos = self.layout.eos | _model_eos(model)

    @classmethod
    def from_pretrained(
        cls, model: str, *, dtype: str = "auto", device: str | None = None, **options: Any
    ) -> Self:
        """Load a model: a folder, a GGUF file, a hub name, ``smollm2-135m`` or ``tiny``.

        Args:
            model: Where it is; options that ``save`` wrote beside it are defaults.
            dtype: The type of its weights, as transformers calls it.
            device: Where it runs; a GPU if there is one.
            options: As the constructor takes them.

        Raises:
            ConfigurationError: There is no such model, or an option is unknown.
        """
        loaded, tokenizer = load_model(model, dtype=dtype, device=device)
        defaults = {"name": model, **_DEFAULTS.get(model, {}), **saved_options(model)}
        return cls(loaded, tokenizer, **{**defaults, **options})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model, tokenizer and options into a folder that ``from_pretrained`` takes."""
        self.model.save_pretrained(path)
        self.tokenizer.save_pretrained(path)
        save_options(
            path,
            {
                "protocol": self.protocol,
                "max_context": self.limits.max_context,
                "max_new_tokens": self.limits.max_new_tokens,
                "has_instructions": self.has_instructions,
                "has_template": self.layout.has_template,
                "is_constrained": self.is_constrained,
            },
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its replies: the weights, sampling, limits and layout."""
        return super().identity | {
            "temperature": self.sampler.temperature,
            "top_k": self.sampler.top_k,
            "top_p": self.sampler.top_p,
            "max_context": self.limits.max_context,
            "max_new_tokens": self.limits.max_new_tokens,
            "compaction": repr(self.limits.compaction),
            "is_constrained": self.is_constrained,
            "has_template": self.layout.has_template,
            "has_instructions": self.has_instructions,
            "weights": weights_fingerprint(self.model),
        }

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play episodes, ``batch_size`` at a time; give each trajectory as soon as it is there.

        The model is in evaluation mode while it plays, and then in the mode that it was in.

        Raises:
            ConfigurationError: ``max_context`` is too little for an episode's first prompt.
            TokenError: Recomputed log-probabilities are not those of drawing, or are no numbers.
        """
        with evaluation_mode(self.model):
            yield from self._play(episodes)

    def _play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        decoder = Decoder(self.model, self.batch_size)
        slots: list[_Slot | None] = [None] * self.batch_size
        finished = 0
        while True:
            for row, slot in enumerate(slots):
                if slot is None and (episode := next(episodes, None)) is not None:
                    slots[row] = self._begin(episode)
            active = [(row, slot) for row, slot in enumerate(slots) if slot is not None]
            if not active:
                return
            for row, trajectory in self._advance(decoder, active):
                slots[row] = None
                if finished % _CHECK_EVERY == 0:
                    check_log_probs(self.model, trajectory, temperature=self.sampler.scale)
                finished += 1
                yield trajectory

    def _begin(self, episode: RunningEpisode) -> _Slot:
        if episode.protocol is None:
            raise ConfigurationError("a local policy writes text: the episode needs a protocol")
        watch = self._watch(episode.protocol.stop)
        talk = Talk(
            episode,
            self.layout,
            self._limits_for(episode.protocol),
            has_instructions=self.has_instructions,
        )
        slot = _Slot(talk, watch)
        self._guide(slot)
        return slot

    def _watch(self, stops: tuple[str, ...]) -> StopWatch:
        """Return what looks for stop strings; it goes through the vocabulary once."""
        if stops not in self._watches:
            self._watches[stops] = StopWatch(self._texts, self.layout.text, stops)
        return self._watches[stops]

    def _limits_for(self, protocol: Protocol) -> Limits:
        """Return the limits; a constrained reply is as long as its forms make it."""
        if not self.is_constrained:
            return self.limits
        longest = max(self._longest(form) for form in protocol.forms())
        return replace(self.limits, max_new_tokens=max(longest, self.limits.max_new_tokens))

    def _longest(self, form: Form) -> int:
        texts = "".join(part if isinstance(part, str) else part.end for part in form)
        blanks = sum(isinstance(part, Blank) for part in form)
        return len(texts.encode()) + blanks * self._blank_tokens

    @property
    def _blank_tokens(self) -> int:
        return min(_BLANK_TOKENS, self.limits.max_new_tokens)

    def _advance(
        self, decoder: Decoder, active: list[tuple[int, _Slot]]
    ) -> Iterator[tuple[int, Trajectory]]:
        """Draw one token in each slot; give the episodes that ended by it."""
        logits = decoder.extend([row for row, _ in active], [slot.talk.ids for _, slot in active])
        if not torch.isfinite(logits.amax(dim=-1)).all():
            raise TokenError(f"model {self.name!r} gives logits that are no finite numbers")
        log_probs = log_softmax(logits.numpy(), self.sampler.scale)
        for (row, slot), values in zip(active, log_probs, strict=True):
            talk = slot.talk
            guide = talk.guide
            token = self.sampler.draw(values, talk.generator, guide.allows if guide else None)
            if token is None:
                raise ConfigurationError("no token of the vocabulary fits the protocol's forms")
            talk.take(token, float(values[token]))
            if guide is not None:
                guide.accept(token)
                talk.give(guide.forced())
            ended = self._ended(slot, token)
            if ended is None:
                continue
            trajectory = talk.end(ended[0], is_cut=ended[1])
            if trajectory is not None:
                yield row, trajectory
            else:
                self._guide(slot)

    def _ended(self, slot: _Slot, token: int) -> tuple[str, bool] | None:
        """Return the reply's text and whether it was cut, if the reply is over."""
        talk = slot.talk
        if token in self._eos:
            return self.layout.text(talk.reply[:-1]), False
        if talk.guide is not None:
            return (self.layout.text(talk.reply), False) if talk.guide.is_done else None
        text = None if talk.is_summary else slot.watch.end(talk.reply)
        if text is not None:
            return text, False
        return (self.layout.text(talk.reply), True) if talk.is_full else None

    def _guide(self, slot: _Slot) -> None:
        """Give the next reply its guide, if decoding is constrained; a summary is free."""
        talk = slot.talk
        protocol = talk.episode.protocol
        talk.guide = None
        if self.is_constrained and not talk.is_summary and protocol is not None:
            talk.guide = Guide(
                protocol.forms(),
                self._texts,
                self.layout.plain,
                max_tokens=self._blank_tokens,
            )
            talk.give(talk.guide.forced())


def _check_context(model: PreTrainedModel, max_context: int) -> None:
    check_at_least("max_context", max_context, 1)
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if longest is not None and max_context > longest:
        raise ConfigurationError(
            f"max_context={max_context} is more than the model's {longest} positions"
        )


def _token_texts(tokenizer: PreTrainedTokenizerBase, layout: Format) -> list[str]:
    """Return each token's text; control tokens have none."""
    control = set(tokenizer.all_special_ids)
    return ["" if i in control else layout.text([i]) for i in range(len(tokenizer))]


def _model_eos(model: PreTrainedModel) -> frozenset[int]:
    config = model.generation_config
    eos = None if config is None else config.eos_token_id
    if eos is None:
        return frozenset()
    return frozenset(map(int, eos if isinstance(eos, list) else [eos]))
