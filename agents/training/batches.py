"""Batches: segments as tensors, padded to few lengths, and what a model makes of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedModel

from ..rollouts.trajectory import Segment
from .regularisers import entropy

__all__ = ["Rows", "Scores", "by_length", "logits_of", "pad", "score"]

_MULTIPLE = 16  # lengths are padded to multiples of it: every new shape costs time on a CPU


class Rows(NamedTuple):
    """Segments, one a row, padded on the right.

    Attributes:
        ids: Token ids, (rows, tokens), int64; 0 where padded.
        drawn: Which tokens the policy drew, (rows, tokens), bool.
        present: Which places hold a token at all, (rows, tokens), bool.
    """

    ids: Tensor
    drawn: Tensor
    present: Tensor


class Scores(NamedTuple):
    """What a model makes of the tokens that were asked for.

    Attributes:
        log_probs: Of each token, (rows, tokens), float32; 0.0 where it was not asked for.
        entropy: The mean entropy in nats of the distributions that they came from.
        accuracy: The share of them that were the likeliest, no gradient.
    """

    log_probs: Tensor
    entropy: Tensor
    accuracy: float


def pad(segments: Sequence[Segment], device: torch.device | str = "cpu") -> Rows:
    """Return segments as rows."""
    longest = max(len(segment.ids) for segment in segments)
    width = -(-longest // _MULTIPLE) * _MULTIPLE
    ids = np.zeros((len(segments), width), dtype=np.int64)
    drawn = np.zeros((len(segments), width), dtype=bool)
    present = np.zeros((len(segments), width), dtype=bool)
    for row, segment in enumerate(segments):
        length = len(segment.ids)
        ids[row, :length] = segment.ids
        drawn[row, :length] = segment.mask
        present[row, :length] = True
    return Rows(*(torch.from_numpy(array).to(device) for array in (ids, drawn, present)))


def by_length(
    lengths: Sequence[int], tokens: int, generator: np.random.Generator
) -> list[list[int]]:
    """Return the places of segments in batches of like lengths, the batches in drawn order.

    Args:
        lengths: Of the segments.
        tokens: How many tokens a batch may take with its padding; at least one segment goes in.
        generator: Decides the order of the batches, and of equal lengths.
    """
    shuffled = generator.permutation(len(lengths))
    batches: list[list[int]] = [[]]
    for place in sorted(map(int, shuffled), key=lambda place: lengths[place]):
        width = -(-lengths[place] // _MULTIPLE) * _MULTIPLE
        if batches[-1] and (len(batches[-1]) + 1) * width > tokens:
            batches.append([])
        batches[-1].append(place)
    order = generator.permutation(len(batches))
    return [batches[int(place)] for place in order if batches[int(place)]]


def score(
    model: PreTrainedModel,
    rows: Rows,
    asked: Tensor,
    *,
    temperature: float = 1.0,
    pays_entropy: bool = False,
) -> Scores:
    """Return the log-probabilities of the tokens that are asked for, with their gradient.

    Padding stands behind every token, where a causal model does not look, so none is masked.

    Args:
        model: A causal language model.
        rows: What it reads.
        asked: Which tokens, (rows, tokens), bool; the first of a row is never predicted.
        temperature: That of sampling.
        pays_entropy: Whether the entropy needs a gradient.
    """
    targets = asked[:, 1:] & rows.present[:, 1:]
    logits = logits_of(model, rows, targets).float() / temperature
    chosen = rows.ids[:, 1:][targets]
    every = logits.log_softmax(dim=-1)
    values = every.gather(-1, chosen[:, None])[:, 0]
    log_probs = torch.zeros_like(rows.ids, dtype=torch.float32)
    places = torch.zeros_like(rows.present)
    places[:, 1:] = targets
    log_probs = log_probs.masked_scatter(places, values)
    with torch.set_grad_enabled(pays_entropy and torch.is_grad_enabled()):
        mean_entropy = entropy(logits, torch.ones_like(chosen, dtype=torch.bool))
    with torch.no_grad():
        accuracy = float((logits.argmax(dim=-1) == chosen).sum()) / max(1, len(values))
    return Scores(log_probs, mean_entropy, accuracy)


def logits_of(model: PreTrainedModel, rows: Rows, targets: Tensor) -> Tensor:
    """Return the logits that predict the targets, (targets, vocabulary)."""
    if isinstance(model, LlamaForCausalLM):  # its head is plain: other places need no logits
        hidden = model.model(rows.ids, use_cache=False).last_hidden_state
        needed: Tensor = model.lm_head(hidden[:, :-1][targets])
        return needed
    every: Tensor = model(rows.ids, use_cache=False).logits
    return every[:, :-1][targets]
