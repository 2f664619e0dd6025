"""The bitmaps of a segment while it is built: which of its blocks hold which grams."""

import struct
from typing import TYPE_CHECKING

import numpy as np

from .index import BUCKETS, CONTAINER, FOLD, GRAM, bitmap_type, bucket_of, width_of

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Postings"]

_BATCH_BLOCKS = 4_096  # held as bits before they become bitmaps: 32 MB; more is no array there
_SLAB_BUCKETS = 4_096  # turned into bitmaps at once
# The head of a roaring bitmap with one container and no runs, in the portable format: cookie,
# number of containers, key, cardinality - 1, where the container begins.
_BITMAP_HEAD = struct.Struct("<IIHHI")
_COOKIE = 12_346


class Postings:
    """The bitmaps of one segment: which of its blocks hold each bucket."""

    def __init__(self) -> None:
        self._bitmap = bitmap_type()
        self._octet = np.zeros(BUCKETS, np.uint8)  # eight blocks, one bit each
        self._batch = np.zeros((_BATCH_BLOCKS // 8, BUCKETS), np.uint8)
        self._bitmaps: dict[int, BitMap] = {}
        self._blocks = 0  # in this segment
        self._bit = np.uint8(0)

    def begin_block(self) -> None:
        """Let what is added from now on be in the next block."""
        if self._blocks:
            self._close_block()
        self._bit = np.uint8(1 << (self._blocks & 7))
        self._blocks += 1

    def add(self, piece: bytes) -> None:
        """Add the grams of a piece of the block."""
        folded = piece.translate(FOLD)
        if not folded.endswith(b"\n"):
            folded += b"\n"  # so that the last three bytes begin a gram
        for shift in range(GRAM):
            count = (len(folded) - shift) // GRAM
            if count > 0:
                buckets = bucket_of(np.frombuffer(folded, "<u4", count, shift))
                self._octet[buckets] = self._octet[buckets] | self._bit

    def take(self) -> tuple[list[int], list[bytes], int]:
        """Return the buckets that were seen, the bitmaps that they share, and the blocks."""
        if self._blocks:
            self._close_block(is_last=True)
        width = width_of(self._blocks)
        share = CONTAINER // width
        # Buckets of like density share a bitmap, so that dense ones take one bit a block.
        buckets = sorted(self._bitmaps, key=lambda bucket: (len(self._bitmaps[bucket]), bucket))
        bitmaps = []
        for start in range(0, len(buckets), share):
            joined = self._bitmap()
            for place, bucket in enumerate(buckets[start : start + share]):
                joined |= self._bitmaps.pop(bucket).shift(place * width)
            joined.run_optimize()
            bitmaps.append(joined.serialize())
        blocks, self._blocks = self._blocks, 0
        return buckets, bitmaps, blocks

    def _close_block(self, *, is_last: bool = False) -> None:
        in_batch = (self._blocks - 1) % _BATCH_BLOCKS + 1
        if in_batch % 8 == 0 or is_last:
            self._batch[(in_batch - 1) // 8] = self._octet
            self._octet[:] = 0
        if in_batch == _BATCH_BLOCKS or is_last:
            self._merge(self._blocks - in_batch, (in_batch + 7) // 8)

    def _merge(self, first: int, octets: int) -> None:
        """Turn the bits of a batch, whose first block is given, into bitmaps."""
        for low in range(0, BUCKETS, _SLAB_BUCKETS):
            slab = np.ascontiguousarray(self._batch[:octets, low : low + _SLAB_BUCKETS].T)
            bits = np.unpackbits(slab, axis=1, bitorder="little")
            places = np.flatnonzero(bits.view(bool))
            buckets, blocks = np.divmod(places, octets * 8)
            counts = np.bincount(buckets, minlength=_SLAB_BUCKETS)
            values = (blocks + first).astype("<u2").tobytes()
            start = 0
            for bucket, count in enumerate(counts.tolist(), start=low):
                if count:
                    end = start + 2 * count
                    self._add_to_bitmap(bucket, values[start:end], count)
                    start = end

    def _add_to_bitmap(self, bucket: int, values: bytes, count: int) -> None:
        head = _BITMAP_HEAD.pack(_COOKIE, 1, 0, count - 1, _BITMAP_HEAD.size)
        added = self._bitmap.deserialize(head + values)
        if bucket in self._bitmaps:
            self._bitmaps[bucket] |= added
        else:
            self._bitmaps[bucket] = added
