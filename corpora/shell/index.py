"""An index of raw files: which blocks of lines may hold a literal.

A file is cut into blocks of whole lines. Every four bytes in a row (ASCII letters in lower case)
are hashed into one of 65,536 buckets, and each bucket has a roaring bitmap of the blocks that hold
it (Lemire et al. 2016, "Consistently faster and smaller compressed bitmaps with Roaring"). A block
without one of a literal's buckets cannot hold the literal; one with all of them may.

A bitmap has room for 65,536 blocks; where there are fewer, buckets of like density share one.

The file: a prelude with sizes and checksums, the body (per segment of 65,536 blocks the numbers of
the buckets, where the bitmaps end, and the bitmaps; then where blocks begin, and how many lines
they have), and a header in JSON that says where each part lies and what was indexed. It is written
beside its place and renamed, read through a memory map, and trusted only while every file has the
size, times and inode that it had.
"""

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import CorpusError, MissingExtraError
from .literals import MIN_LITERAL, Requirement

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = [
    "BUCKETS",
    "CONTAINER",
    "FOLD",
    "GRAM",
    "MAGIC",
    "PRELUDE",
    "SEGMENT_BLOCKS",
    "GrepIndex",
    "IndexedFile",
    "Stamp",
    "bitmap_type",
    "bucket_of",
    "index_path",
    "width_of",
]

MAGIC = b"seekgrep"
PRELUDE = struct.Struct("<8sIQQII")  # magic, format, bytes of body and header, checksum of each
GRAM = 4  # bytes
BUCKETS = 1 << 16
CONTAINER = 1 << 16  # values in one container of a roaring bitmap
SEGMENT_BLOCKS = CONTAINER
FOLD = bytes(code + 32 if 65 <= code <= 90 else code for code in range(256))

_FORMAT = 1
_MULTIPLIER = np.uint32(0x9E3779B1)  # Knuth's multiplicative hashing: 2**32 over the golden ratio
_SHIFT = np.uint32(16)
_MANY_BLOCKS = 4_096  # fewer are read in full sooner than a short literal is looked up
_FEW_BLOCKS = 8  # are not worth another look-up
_FOLDED_BYTES = sorted(set(FOLD))

Buckets = NDArray[np.intp]
Blocks = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Hold what tells that a file or folder has not changed."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return the stamp of what was asked for its status; a folder's size says nothing."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Hold what the index knows of one file.

    Attributes:
        name: The path under the root.
        stamp: What it was when it was read.
        first_block: The number of its first block.
        blocks: How many blocks it has.
        is_plain: Whether it is lines of text that can be searched in parts: it holds no NUL byte
            and does not begin with a byte order mark.
        is_utf8: Whether all of it is UTF-8. Where it is not, what grep writes around a match
            depends on lines far away.
        is_sparse: Whether it takes less room on disk than its size, which grep looks at.
    """

    name: str
    stamp: Stamp
    first_block: int
    blocks: int
    is_plain: bool
    is_utf8: bool
    is_sparse: bool


def index_path(root: str | os.PathLike[str]) -> Path:
    """Return where the index of a folder or file is kept unless said otherwise: beside it."""
    path = Path(root).resolve()
    return path.with_name(path.name + ".grepindex")


def bitmap_type() -> "type[BitMap]":
    """Return the class of bitmaps.

    Raises:
        MissingExtraError: pyroaring is not installed.
    """
    try:
        from pyroaring import BitMap
    except ImportError:
        raise MissingExtraError("pyroaring", "grep") from None
    return BitMap


def bucket_of(grams: NDArray[np.uint32]) -> Buckets:
    """Return the bucket of each gram, given as little-endian numbers."""
    return ((grams * _MULTIPLIER) >> _SHIFT).astype(np.intp)


def width_of(blocks: int) -> int:
    """Return how many values of a bitmap are for one bucket of a segment: a power of two."""
    return max(64, 1 << (blocks - 1).bit_length())


class GrepIndex:
    """An index that is open for reading. Safe to use from several threads.

    Args:
        path: The file that ``build_index`` wrote.

    Raises:
        CorpusError: There is no such file, or it is torn, damaged or of another version.
        MissingExtraError: pyroaring is not installed.

    Attributes:
        files: What was indexed, by path under the root.
        folders: Every folder under the root, with its stamp; the root is ``"."``.
        others: What is under the root and was not indexed: links, devices, unreadable files.
        block_bytes: How large a block is at least.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._bitmap = bitmap_type()
        try:
            with open(self.path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            header = _checked_header(self._map)
        except (OSError, ValueError, struct.error) as error:
            raise CorpusError(f"{path}: not a usable index ({error}); run: seekgym index") from None
        self.block_bytes: int = header["block_bytes"]
        self.files = {row[0]: _indexed_file(row) for row in header["files"]}
        self.folders = {name: Stamp(*stamp) for name, stamp in header["folders"]}
        self.others: list[str] = header["others"]
        self._segments = [_Segment(self, *row) for row in header["segments"]]
        self._starts = self.array(np.dtype("<u8"), *header["starts"])
        self._lines = self.array(np.dtype("<u4"), *header["lines"])
        self._odd = self._bitmap.deserialize(bytes.fromhex(header["folding_blocks"]))

    @property
    def size_bytes(self) -> int:
        """How large the index is."""
        return len(self._map)

    def array(self, dtype: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
        """Return a part of the body as an array that is read where it is looked at."""
        return np.frombuffer(self._map, dtype, count, PRELUDE.size + offset)

    def bitmap_bytes(self, start: int, end: int) -> bytes:
        """Return a part of the body."""
        return self._map[PRELUDE.size + start : PRELUDE.size + end]

    def is_current(self, root: Path, names: Iterable[str]) -> bool:
        """Tell whether these files are as they were when they were indexed."""
        return all(_stamp(root, name) == self.files[name].stamp for name in names)

    def is_current_tree(self, root: Path) -> bool:
        """Tell whether the whole tree is as it was, down to each file's name."""
        for name, stamp in self.folders.items():
            found = _stamp(root, name)
            if found is None or found.modified_ns != stamp.modified_ns:
                return False
        return self.is_current(root, self.files)

    def candidates(self, requirement: Requirement) -> Blocks:
        """Return the blocks in which a line may fulfil a requirement, in ascending order.

        Every block that is left out holds none.
        """
        found = []
        for number, segment in enumerate(self._segments):
            blocks = segment.candidates(requirement)
            found.append(np.asarray(blocks.to_array(), np.int64) + number * SEGMENT_BLOCKS)
        chosen = np.concatenate(found) if found else np.empty(0, np.int64)
        if requirement.ignores_case and self._odd:
            odd = np.asarray(self._odd.to_array(), np.int64)
            chosen = np.union1d(chosen, odd)
        return chosen

    def lines_of(self, file: IndexedFile) -> NDArray[np.int64]:
        """Return how many lines each block of a file has."""
        return self._lines[file.first_block : file.first_block + file.blocks].astype(np.int64)

    def bounds_of(self, file: IndexedFile) -> NDArray[np.int64]:
        """Return where each block of a file begins, and where the last one ends."""
        starts = self._starts[file.first_block : file.first_block + file.blocks]
        return np.append(starts.astype(np.int64), file.stamp.size)


class _Segment:
    """The postings of up to 65,536 blocks."""

    def __init__(
        self, index: GrepIndex, buckets: int, ends: int, bitmaps: int, count: int, blocks: int
    ) -> None:
        self._index = index
        self._bitmaps = bitmaps
        self._blocks = blocks
        self._width = width_of(blocks)
        self._share = CONTAINER // self._width  # buckets in one bitmap
        present = index.array(np.dtype("<u2"), buckets, count)
        self._places = np.full(BUCKETS, -1, np.int32)
        self._places[present] = np.arange(count, dtype=np.int32)
        self._ends = index.array(np.dtype("<u4"), ends, -(-count // self._share))

    def candidates(self, requirement: Requirement) -> "BitMap":
        """Return the blocks that hold one literal of every clause, as far as buckets tell."""
        known: dict[int, BitMap | None] = {}
        found: BitMap | None = None
        # Short literals cost most and tell least, so they come last, if at all.
        for clause in sorted(requirement.clauses, key=lambda clause: -min(map(len, clause))):
            if min(map(len, clause)) < GRAM and self._blocks < _MANY_BLOCKS:
                break
            if found is not None and len(found) <= _FEW_BLOCKS:
                break
            blocks = self._index._bitmap.union(*(self._holding(text, known) for text in clause))
            found = blocks if found is None else found & blocks
        return self._index._bitmap(range(self._blocks)) if found is None else found

    def _holding(self, literal: bytes, known: "dict[int, BitMap | None]") -> "BitMap":
        empty = self._index._bitmap()
        if len(literal) < GRAM:
            buckets = _buckets_beginning_with(literal)
            return empty.union(*(self._posting(b, known) or empty for b in buckets))
        found: BitMap | None = None
        for bucket in _buckets_in(literal):
            posting = self._posting(bucket, known)
            if posting is None:
                return empty
            found = posting if found is None else found & posting
            if not found:
                break
        return empty if found is None else found

    def _posting(self, bucket: int, known: "dict[int, BitMap | None]") -> "BitMap | None":
        if bucket not in known:
            place = int(self._places[bucket])
            known[bucket] = None if place < 0 else self._read(*divmod(place, self._share))
        return known[bucket]

    def _read(self, number: int, place: int) -> "BitMap":
        """Return the blocks of the bucket with a place in a bitmap."""
        start = int(self._ends[number - 1]) if number else 0
        end = int(self._ends[number])
        raw = self._index.bitmap_bytes(self._bitmaps + start, self._bitmaps + end)
        bitmap = self._index._bitmap.deserialize(raw)
        if self._share == 1:
            return bitmap
        first = place * self._width
        own = self._index._bitmap(range(first, first + self._width))
        return (bitmap & own).shift(-first)


def _buckets_in(literal: bytes) -> list[int]:
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(literal, np.uint8), GRAM)
    grams = np.ascontiguousarray(windows).view("<u4").ravel()
    buckets: list[int] = np.unique(bucket_of(grams)).tolist()
    return buckets


def _buckets_beginning_with(literal: bytes) -> list[int]:
    """Return the buckets of the grams that a literal of three bytes can be the start of."""
    if len(literal) < MIN_LITERAL:
        raise ValueError("a literal this short is in no clause")
    grams = b"".join(literal + bytes([code]) for code in _FOLDED_BYTES)
    buckets: list[int] = np.unique(bucket_of(np.frombuffer(grams, "<u4"))).tolist()
    return buckets


def _checked_header(data: mmap.mmap) -> dict[str, Any]:
    """Return the header of an index that is whole."""
    magic, version, body, header, body_sum, header_sum = PRELUDE.unpack_from(data)
    if magic != MAGIC or version != _FORMAT:
        raise ValueError("of another kind or version")
    if len(data) != PRELUDE.size + body + header:
        raise ValueError("its size is not what it says")
    view = memoryview(data)
    try:
        parts = view[PRELUDE.size : PRELUDE.size + body], view[PRELUDE.size + body :]
        if (zlib.crc32(parts[0]), zlib.crc32(parts[1])) != (body_sum, header_sum):
            raise ValueError("its checksum is wrong")
        return dict(json.loads(bytes(parts[1])))
    finally:
        for part in parts:
            part.release()
        view.release()


def _indexed_file(row: Sequence[Any]) -> IndexedFile:
    name, stamp, *rest = row
    return IndexedFile(name, Stamp(*stamp), *rest)


def _stamp(root: Path, name: str) -> Stamp | None:
    try:
        return Stamp.of(os.lstat(root / name))
    except (OSError, ValueError):
        return None
