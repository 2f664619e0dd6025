"""A folder in memory with the same names as a corpus, and only some of its blocks of lines."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .index import GrepIndex, IndexedFile

__all__ = ["IGNORE_FILES", "Portion", "Shadow", "choose_portion"]

_MEMORY = "/dev/shm"
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_KEPT_BYTES = 16 << 20  # of a file, so that its pages can be written over
_MAX_FILES = 10_000
# Files that say which others rg leaves out.
IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")


@dataclass(frozen=True, slots=True)
class Portion:
    """Hold which bytes of a file to show, and how many empty lines to put between them.

    Attributes:
        runs: Pairs of a start and an end.
        gaps: The number of empty lines before each run, and after the last.
    """

    runs: tuple[tuple[int, int], ...]
    gaps: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many bytes are shown."""
        return sum(end - start for start, end in self.runs) + sum(self.gaps)


def choose_portion(
    index: GrepIndex,
    file: IndexedFile,
    blocks: NDArray[np.int64],
    *,
    needs_numbers: bool,
    context: int,
) -> Portion:
    """Return the portion of a file that some of its blocks are.

    Args:
        index: What knows the blocks.
        file: The file.
        blocks: Numbers of blocks, counted from the file's first.
        needs_numbers: Whether each line must have the number that it has in the file.
        context: How many lines around the blocks must be shown too.
    """
    bounds = index.bounds_of(file)
    firsts, lasts = blocks, blocks + 1
    before = np.zeros(1, np.int64)  # lines before each block
    if needs_numbers:
        before = np.concatenate([before, np.cumsum(index.lines_of(file))])
        if context:
            firsts = np.searchsorted(before, before[blocks] - context, "right") - 1
            lasts = np.searchsorted(before, before[blocks + 1] + context, "left")
            firsts, lasts = np.maximum(firsts, 0), np.minimum(lasts, file.blocks)
    firsts, lasts = _merged(firsts, lasts)
    runs = tuple(zip(bounds[firsts].tolist(), bounds[lasts].tolist(), strict=True))
    if not needs_numbers:
        return Portion(runs, (0,) * (len(runs) + 1))
    ends = np.concatenate([[0], lasts])
    starts = np.concatenate([firsts, [file.blocks]])
    return Portion(runs, tuple((before[starts] - before[ends]).tolist()))


def _merged(
    firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join ranges that touch; both arrays ascend."""
    if not len(firsts):
        return firsts, lasts
    is_new = np.concatenate([[True], firsts[1:] > lasts[:-1]])
    places = np.flatnonzero(is_new)
    return firsts[places], lasts[np.append(places[1:] - 1, len(lasts) - 1)]


class Shadow:
    """A folder that holds every name of a corpus, each file empty until it is filled.

    Args:
        root: The folder of the corpus.
        index: What was indexed in it.

    Attributes:
        path: The folder.
        is_whole: Whether every file and folder of the corpus has its name here.
        is_in_order: Whether each folder lists its entries in the order of the original.
    """

    def __init__(self, root: Path, index: GrepIndex) -> None:
        self._root = root
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        self.path = Path(tempfile.mkdtemp(prefix="seekgym-grep-", dir=memory))
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())
        self.is_whole = len(index.files) <= _MAX_FILES and not index.others
        self._sizes: dict[str, int] = {}
        if self.is_whole:
            orders = [self._copy_names(folder) for folder in index.folders]
            self.is_in_order = all(orders)
        else:
            self.is_in_order = False

    def fill(self, portions: dict[str, Portion]) -> bool:
        """Show these portions and nothing else.

        Returns:
            False if a file now begins with a byte order mark that it did not begin with.
        """
        for name in [name for name, size in self._sizes.items() if size]:
            if name not in portions:
                self._truncate(name, 0)
        return all([self._write(name, portion) for name, portion in portions.items()])

    def release(self) -> None:
        """Give back memory that the next search is not likely to need."""
        for name, size in self._sizes.items():
            if size > _KEPT_BYTES:
                self._truncate(name, 0)

    def close(self) -> None:
        """Remove the folder."""
        self._finalizer()

    def _copy_names(self, folder: str) -> bool:
        """Make the entries of a folder, and tell whether they are listed in the same order."""
        original, copy = self._root / folder, self.path / folder
        entries = _entries(original)
        for name, is_folder in reversed(entries):  # memory lists what was made last first
            if is_folder:
                (copy / name).mkdir(exist_ok=True)
            else:
                (copy / name).touch()
        return _entries(copy) == entries

    def _write(self, name: str, portion: Portion) -> bool:
        path = self.path / name
        if name not in self._sizes and not self.is_whole:
            path.parent.mkdir(parents=True, exist_ok=True)
        size = 0
        begins_alike = portion.gaps[0] == 0 and portion.runs[:1] and portion.runs[0][0] == 0
        with open(path, "r+b" if path.exists() else "w+b", buffering=0) as out:
            for piece in self._pieces(name, portion):
                if size == 0 and not begins_alike and piece.startswith(_MARKS):
                    return False
                size += out.write(piece)
            if self._sizes.get(name, 0) != size:
                out.truncate(size)
        self._sizes[name] = size
        return True

    def _pieces(self, name: str, portion: Portion) -> Iterator[bytes]:
        with open(self._root / name, "rb", buffering=0) as file:
            fd = file.fileno()
            for gap, run in zip(portion.gaps, (*portion.runs, None), strict=True):
                if gap:
                    yield b"\n" * gap
                if run is not None:
                    yield from _read(fd, *run)

    def _truncate(self, name: str, size: int) -> None:
        os.truncate(self.path / name, size)
        self._sizes[name] = size


def _remove(folder: Path, owner: int) -> None:
    """Remove a folder, unless it belongs to the process this one was forked from."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _read(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = os.pread(fd, min(end - start, 1 << 20), start)
        if not piece:
            return  # it shrank: whoever asked looks at its stamp afterwards
        yield piece
        start += len(piece)


def _entries(folder: Path) -> Sequence[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
