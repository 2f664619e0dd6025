"""Run pipelines on the few blocks of lines that can matter, with the same bytes as on all.

A pipeline headed by rg or grep is looked at: which literals must a line contain to match? The
index says which blocks of lines may hold them. These blocks alone are written, under the same
names, into a folder in memory, and the same pipeline is run there by the real programs behind the
same fence. Lines that are left out cannot match, so nothing that is written differs; where line
numbers or context are asked for, empty lines stand in their place. Whatever is not provably the
same is run in full.

GrepSeek (arXiv:2605.29307) splits a corpus into shards that are all searched and merged; here
nothing is merged and nothing is searched that cannot match.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import BackendError
from .base import ShellResult
from .index import GrepIndex, IndexedFile
from .parse import Pipeline
from .sandbox import PlainRunner
from .searches import Search, describe_search, reads_only_pipe
from .shadow import IGNORE_FILES, Portion, Shadow, choose_portion

__all__ = ["LEAST_BYTES", "IndexedEngine"]

LEAST_BYTES = 4 << 20  # fewer are searched as fast in full
_ALWAYS_SERVED = 1 << 18  # bytes that cost less to copy than a program to start
_MAX_SHARE = 8  # at most one byte in so many is copied; above, reading all is as fast


class IndexedEngine:
    """Runs pipelines over one folder, narrowed by an index where that cannot be seen.

    Safe to use from several threads.

    Args:
        root: The folder of the corpus.
        index: Its index; one that no longer fits a file is not used for that file.
        runner: What runs pipelines in full, and says how they are fenced and limited.
        least_bytes: Searches of files that are smaller in all are run in full.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        index: GrepIndex,
        runner: PlainRunner,
        *,
        least_bytes: int = LEAST_BYTES,
    ) -> None:
        self.root = Path(root).resolve()
        self.index = index
        self.runner = runner
        self.least_bytes = least_bytes
        self._prepare()

    def _prepare(self) -> None:
        self._local = threading.local()
        self._lock = threading.Lock()
        self._idle: list[_Place] = []
        self._owner = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        """Return what makes an equal engine; the index is opened again."""
        names = ("root", "runner", "least_bytes")
        return {name: self.__dict__[name] for name in names} | {"path": self.index.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state and open the index."""
        self.index = GrepIndex(state.pop("path"))
        self.__dict__.update(state)
        self._prepare()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same engine: copies of environments share it."""
        return self

    @property
    def served(self) -> bool:
        """Whether the index served the last run of this thread."""
        return bool(getattr(self._local, "served", False))

    def run(self, pipeline: Pipeline) -> ShellResult:
        """Return what a pipeline wrote: the same bytes and exit code as of the runner.

        Raises:
            CommandError: A program, an option, a script or a path is not allowed.
            BackendError: The pipeline could not be run at all.
        """
        self._local.served = False
        result = self._narrowed(pipeline)
        if result is None:
            return self.runner.run(pipeline)
        self._local.served = True
        return result

    def close(self) -> None:
        """Remove the folders in memory and end their workers; a later run makes others."""
        with self._lock:
            places, self._idle = self._idle, []
        for place in places:
            place.close()

    def _narrowed(self, pipeline: Pipeline) -> ShellResult | None:
        """Return the result over some blocks, or None if all have to be read."""
        search = describe_search(pipeline.stages[0])
        if search is None or not all(map(reads_only_pipe, pipeline.stages[1:])):
            return None
        scope = self._scope_of(search)
        if scope is None or not self._is_current(scope):
            return None
        portions = self._choose(search, scope)
        if portions is None:
            return None
        with self._borrowed() as place:
            if scope.has_folders and not place.looks_like_original(search.program):
                return None
            if not place.shadow.fill(portions) or not self._is_current(scope):
                return None
            result = place.runner.run(pipeline)
            place.shadow.release()
            return result

    def _scope_of(self, search: Search) -> "_Scope | None":
        """Return the files that a search may look at, or None if one is not known."""
        named: set[str] = set()
        found: set[str] = set()
        for path in search.paths:
            inside = _inside(path)
            if inside is None:
                return None
            if inside in self.index.files and not path.endswith("/"):
                named.add(inside)
            elif search.is_recursive and inside in self.index.folders:
                prefix = "" if inside == "." else f"{inside}/"
                found.update(name for name in self.index.files if name.startswith(prefix))
            else:
                return None
        files = [self.index.files[name] for name in sorted(named | found)]
        if not files or sum(file.stamp.size for file in files) < self.least_bytes:
            return None
        if any(_depends_on_all(search, file) for file in files):
            return None
        has_folders = any(_inside(path) not in named for path in search.paths)
        return _Scope(files, named, has_folders)

    def _is_current(self, scope: "_Scope") -> bool:
        if scope.has_folders:
            return self.index.is_current_tree(self.root)
        return self.index.is_current(self.root, scope.named)

    def _choose(self, search: Search, scope: "_Scope") -> dict[str, Portion] | None:
        """Return what to show of each file, or None if that is too much."""
        candidates = self.index.candidates(search.requirement)
        portions: dict[str, Portion] = {}
        size = 0
        most = max(_ALWAYS_SERVED, sum(file.stamp.size for file in scope.files) // _MAX_SHARE)
        for file in scope.files:
            ends = (file.first_block, file.first_block + file.blocks)
            first, end = np.searchsorted(candidates, ends)
            blocks = candidates[first:end] - file.first_block
            portion = self._portion(search, file, blocks)
            if portion.runs or search.is_inverted or file.name in scope.named:
                portions[file.name] = portion
                size += portion.size
            if size > most:
                return None
        return portions

    def _portion(self, search: Search, file: IndexedFile, blocks: NDArray[np.int64]) -> Portion:
        if not file.is_plain or file.name.rpartition("/")[2] in IGNORE_FILES:
            return Portion(((0, file.stamp.size),), (0, 0))
        if not len(blocks) and not search.is_inverted:
            return Portion((), (0,))
        return choose_portion(
            self.index,
            file,
            blocks,
            needs_numbers=search.needs_numbers,
            context=search.context,
        )

    @contextmanager
    def _borrowed(self) -> "Iterator[_Place]":
        """Lend a folder in memory to this thread."""
        if os.getpid() != self._owner:  # the folders are those of the process this was forked from
            self._prepare()
        with self._lock:
            place = self._idle.pop() if self._idle else None
        if place is None:
            place = _Place(self)
        try:
            yield place
        except BaseException:
            place.close()
            raise
        with self._lock:
            self._idle.append(place)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The files that a search may look at, and which of them it names itself."""

    files: list[IndexedFile]
    named: set[str]
    has_folders: bool


class _Place:
    """A folder in memory and what runs pipelines in it."""

    def __init__(self, engine: IndexedEngine) -> None:
        try:
            self.shadow = Shadow(engine.root, engine.index)
        except OSError as error:
            raise BackendError(f"no folder in memory could be made: {error}") from error
        self.runner = PlainRunner(
            self.shadow.path, limits=engine.runner.limits, fence=engine.runner.fence
        )

    def looks_like_original(self, program: str) -> bool:
        """Tell whether a search of a folder finds the same files here, in the same order."""
        return self.shadow.is_whole and (program == "rg" or self.shadow.is_in_order)

    def close(self) -> None:
        """End the workers and remove the folder."""
        self.runner.close()
        self.shadow.close()


def _depends_on_all(search: Search, file: IndexedFile) -> bool:
    """Tell whether what is written of a file may depend on more than some of its lines."""
    if search.program == "grep" and search.context and not file.is_utf8:
        return True
    return file.is_sparse and not file.is_plain


def _inside(path: str) -> str | None:
    """Return a path of a folder in the form that the index has it in."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return None if ".." in parts or path.startswith("/") else "/".join(parts) or "."
