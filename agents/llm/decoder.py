"""Decode many sequences at once, each with its own growing key-value cache."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from ...corpora.errors import ConfigurationError
from .slot_cache import SlotCache

__all__ = ["Decoder"]

_WASTE = 1.5  # sequences are padded to one length if that costs no more than this factor
_WORTH_WAITING = 32  # tokens that a sequence copies rather than reads
_TOLERANCE = 1e-3
_PROBE = 7


class Decoder:
    """Reads and continues up to ``slots`` sequences of different lengths.

    A slot holds the keys and values of one sequence; ``extend`` appends to some of them and
    gives the logits after each. No token is read twice, and what a new sequence has in common
    with one in another slot is copied.

    The layout needs a model that takes positions and a four-dimensional mask, as those with
    rotary or learned positions do. Whether it does is tried when the decoder is made: one that
    does not is read sequence by sequence, each with a cache of the model's own kind.

    Args:
        model: A causal language model of transformers.
        slots: How many sequences.
    """

    def __init__(self, model: PreTrainedModel, slots: int) -> None:
        self.model = model
        self.slots = slots
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._keeps_logits = "logits_to_keep" in parameters
        self._ids: list[list[int]] = [[] for _ in range(slots)]
        self._own: list[Any] = [None] * slots
        self.is_batched = "position_ids" in parameters and not _slides(model)
        self._cache = SlotCache(model, slots)
        self.is_batched = self.is_batched and self._agrees()

    @torch.inference_mode()
    def extend(self, rows: Sequence[int], sequences: Sequence[Sequence[int]]) -> torch.Tensor:
        """Bring each row to its sequence and return the logits after it.

        Args:
            rows: Slots, each once.
            sequences: For each, its whole sequence of ids: one that begins with what the slot
                holds is continued, any other takes its place.

        Returns:
            Logits of shape (rows, vocabulary), in float32 on the CPU.

        Raises:
            ConfigurationError: A sequence brings nothing new.
        """
        logits: dict[int, torch.Tensor] = {}
        waiting = dict(zip(rows, sequences, strict=True))
        while waiting:
            ready = self._ready(waiting)
            for row, ids in ready.items():
                self._prepare(row, ids)
                if len(ids) <= len(self._ids[row]):
                    raise ConfigurationError(f"slot {row} is asked to read nothing new")
            feeds = {row: list(ids[len(self._ids[row]) :]) for row, ids in ready.items()}
            for batch in self._batches(feeds):
                read = self._read(batch, [feeds[row] for row in batch]).float().cpu()
                for row, values in zip(batch, read, strict=True):
                    self._ids[row].extend(feeds[row])
                    logits[row] = values
            waiting = {row: ids for row, ids in waiting.items() if row not in ready}
        return torch.stack([logits[row] for row in rows])

    def _ready(self, waiting: Mapping[int, Sequence[int]]) -> dict[int, Sequence[int]]:
        """Return what may be read now: all but those that can copy from one that is read now."""
        ready: dict[int, Sequence[int]] = {}
        new: list[Sequence[int]] = []
        for row, ids in waiting.items():
            if not self.is_batched or self._continues(row, ids):
                ready[row] = ids
                continue
            held = max(_common(other, ids) for other in self._ids)
            if all(_common(other, ids) < held + _WORTH_WAITING for other in new):
                ready[row] = ids
                new.append(ids)
        return ready

    def _continues(self, row: int, ids: Sequence[int]) -> bool:
        held = self._ids[row]
        return 0 < len(held) < len(ids) and held == list(ids[: len(held)])

    def _prepare(self, row: int, ids: Sequence[int]) -> None:
        """Make the slot hold a beginning of the sequence, copied from elsewhere if that helps."""
        if self._continues(row, ids):
            return
        if not self.is_batched:
            self._ids[row], self._own[row] = [], None
            return
        shared = [_common(other, ids) for other in self._ids]
        donor = max(range(self.slots), key=shared.__getitem__)
        length = min(shared[donor], len(ids) - 1)
        if donor != row:
            self._cache.copy(donor, row, length)
        self._cache.lengths[row] = length
        self._ids[row] = list(ids[:length])

    def _batches(self, feeds: Mapping[int, Sequence[int]]) -> list[list[int]]:
        """Split rows into batches of about one length."""
        batches: list[list[int]] = []
        for row in sorted(feeds, key=lambda row: len(feeds[row])):
            shortest = len(feeds[batches[-1][0]]) if batches else 0
            count = len(feeds[row])
            fits = count == shortest or (shortest > 1 and count <= _WASTE * shortest)
            if self.is_batched and fits:
                batches[-1].append(row)
            else:
                batches.append([row])
        return [sorted(batch) for batch in batches]

    def _read(self, rows: Sequence[int], feeds: Sequence[Sequence[int]]) -> torch.Tensor:
        keep = {"logits_to_keep": 1} if self._keeps_logits else {}
        device = self.model.device
        if not self.is_batched:
            (row,), (feed,) = rows, feeds
            if self._own[row] is None:
                self._own[row] = DynamicCache(config=self.model.config)
            ids = torch.tensor([list(feed)], device=device)
            output = self.model(ids, use_cache=True, **{self._cache_name: self._own[row]}, **keep)
            own: torch.Tensor = output.logits[:, -1]
            return own
        width = max(map(len, feeds))
        counts = [len(feed) for feed in feeds]
        starts = [self._cache.lengths[row] for row in rows]
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        positions = torch.zeros(len(rows), width, dtype=torch.long)
        for i, feed in enumerate(feeds):  # padded on the left: the last token of each is last
            ids[i, width - counts[i] :] = torch.tensor(list(feed))
            positions[i, width - counts[i] :] = torch.arange(counts[i]) + starts[i]
        self._cache.select(rows, counts)
        length = max(start + count for start, count in zip(starts, counts, strict=True))
        allowed = torch.arange(length)[None, None, :] <= positions[:, :, None]
        mask = torch.zeros(allowed.shape, dtype=self.model.dtype)
        mask.masked_fill_(~allowed, torch.finfo(self.model.dtype).min)
        output = self.model(
            ids.to(device),
            attention_mask=mask[:, None].to(device),
            position_ids=positions.to(device),
            use_cache=True,
            **{self._cache_name: self._cache},
            **keep,
        )
        self._cache.advance()
        last: torch.Tensor = output.logits[:, -1]
        return last

    def _agrees(self) -> bool:
        """Tell whether reading two ragged sequences together gives what reading each alone does."""
        if self.slots == 1 or not self.is_batched:
            return self.is_batched
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        first = [(7 * i + 3) % vocabulary for i in range(_PROBE)]
        second = [(5 * i + 2) % vocabulary for i in range(_PROBE + 3)]
        try:
            self.extend([0, 1], [first[:2], second[:-1]])
            together = self.extend([0, 1], [first, second])
            with torch.inference_mode():
                alone = torch.stack(
                    [
                        self.model(torch.tensor([ids], device=self.model.device)).logits[0, -1]
                        for ids in (first, second)
                    ]
                )
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
            return False
        finally:
            self._ids = [[] for _ in range(self.slots)]
            self._cache.lengths = [0] * self.slots
        scale = float(alone.float().std()) + 1e-6
        share = _TOLERANCE if self.model.dtype == torch.float32 else 0.1
        return bool((together - alone.float().cpu()).abs().max() < share * scale)


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two sequences begin with in common."""
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length


def _slides(model: PreTrainedModel) -> bool:
    """Tell whether some layer looks back over a window only."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ()
    is_sliding = any(kind != "full_attention" for kind in kinds)
    return is_sliding or (not kinds and bool(getattr(config, "sliding_window", None)))
