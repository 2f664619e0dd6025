"""Build an index of raw files in one pass and in bounded memory."""

import json
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, CorpusError
from .index import (
    GRAM,
    MAGIC,
    PRELUDE,
    SEGMENT_BLOCKS,
    GrepIndex,
    Stamp,
    bitmap_type,
    index_path,
)
from .literals import folds_to_ascii
from .postings import Postings

__all__ = ["build_index", "refresh_index"]

BLOCK_BYTES = 16_384

_FORMAT = 1
_CHUNK_BYTES = 8 << 20  # read at once
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# A file that was written less than this ago can be written again without a new time.
_TICK_NS = 20_000_000

Progress = Callable[[int, int], None]


def refresh_index(
    root: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    names: Sequence[str] | None = None,
    on_progress: Progress | None = None,
) -> tuple[GrepIndex, bool]:
    """Return the index of a folder, and whether it had to be built.

    It is built if there is none, if it is damaged, or if a file or folder changed since.

    Args:
        root: The folder.
        path: Where the index is; beside the folder if left out.
        names: The files to index, as paths under the folder; all if left out.
        on_progress: Told the bytes that are done and the bytes in all.

    Raises:
        CorpusError: The folder cannot be read or the index cannot be written.
        ConfigurationError: The folder does not exist, or the index would lie in it.
        MissingExtraError: pyroaring is not installed.
    """
    place = index_path(root) if path is None else Path(path)
    try:
        index = GrepIndex(place)
    except CorpusError:
        pass
    else:
        folder = Path(root)
        if names is None and index.is_current_tree(folder):
            return index, False
        is_known = names is not None and set(names) <= set(index.files)
        if names is not None and is_known and index.is_current(folder, names):
            return index, False
    build_index(root, place, names=names, on_progress=on_progress)
    return GrepIndex(place), True


def build_index(
    root: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    names: Sequence[str] | None = None,
    block_bytes: int = BLOCK_BYTES,
    on_progress: Progress | None = None,
) -> None:
    """Write the index of a folder, whether there is one or not.

    Args:
        root: The folder.
        path: Where the index is; beside the folder if left out.
        names: The files to index, as paths under the folder; all if left out.
        on_progress: Told the bytes that are done and the bytes in all.
        block_bytes: How large a block is at least. Smaller ones give a larger index, and fewer
            lines beside those that match.
    """
    folder = Path(root)
    place = index_path(root) if path is None else Path(path)
    if not folder.is_dir():
        raise ConfigurationError(f"{root}: not a folder; pass the folder of the corpus")
    if names is None and place.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(f"{place}: the index may not lie in the folder that it is of")
    try:
        descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix="building-")
        try:
            with open(descriptor, "wb") as file:
                _Builder(folder, file, block_bytes, on_progress).build(names)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, place)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise CorpusError(f"the index of {root} cannot be built ({error})") from error


class _Builder:
    """Reads files in order and writes the parts of the index as they become ready."""

    def __init__(
        self, root: Path, out: BinaryIO, block_bytes: int, on_progress: Progress | None
    ) -> None:
        self._root = root
        self._out = out
        self._block_bytes = block_bytes
        self._on_progress = on_progress
        self._body_bytes = 0
        self._body_sum = 0
        self._done = self._total = 0
        self._postings = Postings()
        self._starts: list[int] = []
        self._lines: list[int] = []
        self._folding = bitmap_type()()
        self._segments: list[tuple[int, int, int, int, int]] = []

    def build(self, names: Sequence[str] | None) -> None:
        """Write the whole file."""
        self._out.write(bytes(PRELUDE.size))
        tree = _Tree(self._root, names)
        self._total = sum(tree.sizes)
        files: list[tuple[Any, ...]] = []
        for name in tree.files:
            row = self._add_file(name)
            if row is None:
                tree.others.append(name)
            else:
                files.append(row)
        self._end_segment()
        header = {
            "block_bytes": self._block_bytes,
            "files": files,
            "folders": [(name, astuple(stamp)) for name, stamp in tree.folders],
            "others": tree.others,
            "segments": self._segments,
            "starts": self._write_array(np.asarray(self._starts, "<u8")),
            "lines": self._write_array(np.asarray(self._lines, "<u4")),
            "folding_blocks": self._folding.serialize().hex(),
        }
        text = json.dumps(header).encode()
        self._out.write(text)
        self._out.seek(0)
        sums = self._body_sum, zlib.crc32(text)
        self._out.write(PRELUDE.pack(MAGIC, _FORMAT, self._body_bytes, len(text), *sums))

    def _add_file(self, name: str) -> tuple[Any, ...] | None:
        """Index one file, or return None if it cannot be read."""
        try:
            with open(self._root / name, "rb", buffering=0) as file:
                status = _settled(file.fileno())
                first = len(self._starts)
                is_plain, is_utf8 = self._add_blocks(file)
                if Stamp.of(os.fstat(file.fileno())) != Stamp.of(status):
                    raise CorpusError(f"{name} changed while it was indexed; index it again")
        except PermissionError:
            return None
        is_sparse = status.st_blocks * 512 < status.st_size
        stamp = astuple(Stamp.of(status))
        return name, stamp, first, len(self._starts) - first, is_plain, is_utf8, is_sparse

    def _add_blocks(self, file: Any) -> tuple[bool, bool]:
        """Add the blocks of a file, and tell whether it is plain text and all UTF-8."""
        is_plain = is_utf8 = True
        start = 0
        piece, tail = b"\n", b""
        for piece, is_first in _pieces(file, self._block_bytes):
            if start == 0:
                is_plain = not piece.startswith(_MARKS)
            is_plain = is_plain and b"\0" not in piece
            is_utf8 = is_utf8 and _is_utf8(piece)
            if is_first:
                self._begin_block(start)
                tail = b""
            self._add_piece(tail + piece)  # the tail, so that no gram falls between two pieces
            self._lines[-1] += piece.count(b"\n")
            tail = piece[1 - GRAM :]
            start += len(piece)
            self._report(len(piece))
        if not piece.endswith(b"\n"):
            self._lines[-1] += 1
        return is_plain, is_utf8

    def _report(self, size: int) -> None:
        before, self._done = self._done, self._done + size
        is_due = before // _CHUNK_BYTES != self._done // _CHUNK_BYTES or self._done >= self._total
        if self._on_progress is not None and is_due:
            self._on_progress(self._done, self._total)

    def _begin_block(self, start: int) -> None:
        if len(self._starts) % SEGMENT_BLOCKS == 0 and self._starts:
            self._end_segment()
        self._postings.begin_block()
        self._starts.append(start)
        self._lines.append(0)

    def _add_piece(self, piece: bytes) -> None:
        self._postings.add(piece)
        if not piece.isascii() and any(text in piece for text in folds_to_ascii):
            self._folding.add(len(self._starts) - 1)

    def _end_segment(self) -> None:
        """Write the postings of the blocks since the last segment."""
        buckets, bitmaps, blocks = self._postings.take()
        if not buckets:
            return
        ends = np.cumsum([len(bitmap) for bitmap in bitmaps], dtype="<u8").astype("<u4")
        places = (
            self._write_array(np.asarray(buckets, "<u2"))[0],
            self._write_array(ends)[0],
            self._write(b"".join(bitmaps)),
            len(buckets),
            blocks,
        )
        self._segments.append(places)

    def _write_array(self, values: NDArray[Any]) -> tuple[int, int]:
        return self._write(values.tobytes()), len(values)

    def _write(self, data: bytes) -> int:
        """Write a part of the body, aligned, and return where it begins."""
        padded = data + bytes(-len(data) % 8)
        start = self._body_bytes
        self._out.write(padded)
        self._body_sum = zlib.crc32(padded, self._body_sum)
        self._body_bytes += len(padded)
        return start


class _Tree:
    """What lies under a folder, in sorted order."""

    def __init__(self, root: Path, names: Sequence[str] | None) -> None:
        self.files: list[str] = []
        self.sizes: list[int] = []
        self.folders: list[tuple[str, Stamp]] = []
        self.others: list[str] = []
        if names is None:
            self._walk(root, "")
            return
        self.others.append("files that were not asked for")
        for name in names:
            status = os.lstat(root / name)
            if not stat.S_ISREG(status.st_mode):
                raise CorpusError(f"{name}: not a plain file")
            self.files.append(name)
            self.sizes.append(status.st_size)

    def _walk(self, root: Path, prefix: str) -> None:
        folder = root / prefix
        before = _settled_folder(folder)
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        self.folders.append((prefix.rstrip("/") or ".", before))
        for entry in found:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                self._walk(root, name + "/")
            elif entry.is_file(follow_symlinks=False):
                self.files.append(name)
                self.sizes.append(entry.stat(follow_symlinks=False).st_size)
            else:
                self.others.append(name)


def _settled(fd: int) -> os.stat_result:
    """Return the status of a file, once a change from now on would give it another time."""
    status = os.fstat(fd)
    age_ns = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns)
    if 0 <= age_ns < _TICK_NS:
        time.sleep(_TICK_NS / 1e9)
    return os.fstat(fd)


def _settled_folder(folder: Path) -> Stamp:
    fd = os.open(folder, os.O_RDONLY)
    try:
        return Stamp.of(_settled(fd))
    finally:
        os.close(fd)


def _is_utf8(piece: bytes) -> bool:
    try:
        return piece.isascii() or bool(piece.decode())
    except UnicodeDecodeError:
        return False


def _pieces(file: Any, block_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Give a file in pieces, each with whether a block begins with it.

    A piece is a block, unless a line is longer than what is read at once.
    """
    data = b""
    is_first = True
    while chunk := file.read(_CHUNK_BYTES):
        data += chunk
        start = 0
        while (end := _end_of_block(data, start, block_bytes)) > 0:
            yield data[start:end], is_first
            start, is_first = end, True
        data = data[start:]
        if len(data) >= _CHUNK_BYTES:
            yield data, is_first
            data, is_first = b"", False
    if data:
        yield data, is_first


def _end_of_block(data: bytes, start: int, block_bytes: int) -> int:
    """Return where the block that starts here ends, or 0 if that is not known yet."""
    if len(data) - start < block_bytes:
        return 0
    return data.rfind(b"\n", start, start + block_bytes) + 1 or data.find(b"\n", start) + 1
