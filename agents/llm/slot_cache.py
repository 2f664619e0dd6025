"""A key-value cache in which every row has a length of its own."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

__all__ = ["SlotCache"]

_GROWTH = 256  # a cache grows by this many positions at least


class SlotCache(Cache):
    """Keys and values of several sequences, each as long as it is.

    The next forward pass is about the rows of ``select``, whose new tokens stand at the end of
    theirs; ``advance`` takes them into account after it.

    Args:
        model: Whose keys and values.
        slots: How many sequences.
    """

    def __init__(self, model: PreTrainedModel, slots: int) -> None:
        self.slots = slots
        self.lengths = [0] * slots
        self.rows: list[int] = []
        self.counts: list[int] = []
        layers = model.config.get_text_config().num_hidden_layers
        self._slot_layers = [_SlotLayer(self) for _ in range(layers)]
        super().__init__(layers=[*self._slot_layers])

    def select(self, rows: Sequence[int], counts: Sequence[int]) -> None:
        """Say which slots the next forward pass is about, and how many tokens each gets."""
        self.rows, self.counts = list(rows), list(counts)

    def advance(self) -> None:
        """Take the tokens of the forward pass into account."""
        for row, count in zip(self.rows, self.counts, strict=True):
            self.lengths[row] += count

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the beginning of one slot to another."""
        if length:
            for layer in self._slot_layers:
                layer.copy(source, target, length)


class _SlotLayer(CacheLayerMixin):
    """The keys and values of one layer, for all slots: (slots, heads, positions, width)."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, cache: "SlotCache") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cache = cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = key_states.new_empty(
            self._cache.slots, key_states.shape[1], 0, key_states.shape[3]
        )
        self.values = value_states.new_empty(
            self._cache.slots, value_states.shape[1], 0, value_states.shape[3]
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        cache = self._cache
        ends = [cache.lengths[r] + n for r, n in zip(cache.rows, cache.counts, strict=True)]
        length = max(ends)
        self.keys, self.values = _grown(self.keys, length), _grown(self.values, length)
        if max(cache.counts) == 1:
            rows = torch.tensor(cache.rows)
            columns = torch.tensor(ends) - 1
            self.keys[rows, :, columns] = key_states[:, :, 0]
            self.values[rows, :, columns] = value_states[:, :, 0]
        else:
            for i, (row, count, end) in enumerate(zip(cache.rows, cache.counts, ends, strict=True)):
                self.keys[row, :, end - count : end] = key_states[i, :, -count:]
                self.values[row, :, end - count : end] = value_states[i, :, -count:]
        if cache.rows == list(range(len(cache.rows))):
            count = len(cache.rows)
            return self.keys[:count, :, :length], self.values[:count, :, :length]
        return self.keys[cache.rows, :, :length], self.values[cache.rows, :, :length]

    def copy(self, source: int, target: int, length: int) -> None:
        if self.is_initialized:
            self.keys[target, :, :length] = self.keys[source, :, :length]
            self.values[target, :, :length] = self.values[source, :, :length]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        return max((self._cache.lengths[row] for row in self._cache.rows), default=0)

    def get_max_length(self) -> int:
        return -1


def _grown(values: torch.Tensor, length: int) -> torch.Tensor:
    """Return the tensor with room for so many positions."""
    room = values.shape[2]
    if length <= room:
        return values
    larger = max(length, room + _GROWTH, room * 3 // 2)
    grown = values.new_zeros(*values.shape[:2], larger, values.shape[3])
    grown[:, :, :room] = values
    return grown
