"""A corpus as raw text: one JSON line a document, in a folder that holds nothing else."""

import importlib.util
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.util import Finalize  # runs at the end of forked processes too
from pathlib import Path
from typing import Any, Self

from ..documents import Corpus, Document
from ..errors import BackendError
from .base import Limits, PipelineRunner, ShellResult
from .build import refresh_index
from .engine import LEAST_BYTES, IndexedEngine
from .parse import Pipeline
from .sandbox import PlainRunner

__all__ = ["CORPUS_FILE", "CorpusRunner", "default_runner", "raw_line", "shown_documents"]

CORPUS_FILE = "corpus.jsonl"
_LEAST_SHOWN_CHARS = 40  # of a document's text; fewer do not show it
_MOST_FRAGMENTS = 20
_MOST_SCANNED_BYTES = 1 << 28
_HEAD = re.compile(r'\{"id": ("(?:[^"\\]|\\.)*")')
_default_lock = threading.Lock()


def raw_line(document: Document) -> str:
    """Return the line of a document, without its line break.

    Example:
        >>> raw_line(Document("h9", "Ann", "Ann was born."))
        '{"id": "h9", "title": "Ann", "text": "Ann was born."}'
    """
    fields = {"id": document.id, "title": document.title, "text": document.text}
    return json.dumps(fields, ensure_ascii=False)


class CorpusRunner:
    """Runs pipelines over a corpus, which is written out when it is first asked.

    Searches of a corpus of more than a few megabytes go over an index if ``pyroaring`` is there,
    with the same bytes. Safe to use from several threads. Pickles and copies share the corpus;
    an unpickled runner writes it out again, or finds it in ``folder``.

    Args:
        corpus: What to write.
        folder: Where to keep it, for other processes and later runs; a private folder that goes
            with this runner if left out.
        limits: What a pipeline may use.
    """

    def __init__(
        self, corpus: Corpus, *, folder: str | None = None, limits: Limits | None = None
    ) -> None:
        self.corpus = corpus
        self.folder = folder
        self.limits = limits
        self._prepare()

    def _prepare(self) -> None:
        self._lock = threading.Lock()
        self._runner: PipelineRunner | None = None
        self._path: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what makes an equal runner."""
        return {"corpus": self.corpus, "folder": self.folder, "limits": self.limits}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state; nothing is written yet."""
        self.__dict__.update(state)
        self._prepare()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same runner: copies of environments share it."""
        return self

    @property
    def path(self) -> Path:
        """The file that holds the corpus.

        Raises:
            BackendError: It cannot be written.
        """
        with self._lock:
            if self._path is None:
                try:
                    self._path = self._write()
                except OSError as error:
                    raise BackendError(f"the corpus cannot be written out: {error}") from error
            return self._path

    def run(self, pipeline: Pipeline) -> ShellResult:
        """Return what a pipeline wrote; see ``PipelineRunner``."""
        root = self.path.parent
        with self._lock:
            if self._runner is None:
                self._runner = self._made(root)
            runner = self._runner
        return runner.run(pipeline)

    def _made(self, root: Path) -> PipelineRunner:
        """Return what runs pipelines: over an index where there is one to be had and to gain."""
        plain = PlainRunner(root, limits=self.limits)
        is_small = (root / CORPUS_FILE).stat().st_size < LEAST_BYTES
        if is_small or importlib.util.find_spec("pyroaring") is None:
            return plain
        place = root.with_suffix(".grepindex")
        if self.folder is None:
            Finalize(self, place.unlink, [True], exitpriority=0)
        return IndexedEngine(root, refresh_index(root, place, names=[CORPUS_FILE])[0], plain)

    def _write(self) -> Path:
        """Write the corpus once: into the private folder, or beside others of its fingerprint."""
        if self.folder is None:
            target = Path(tempfile.mkdtemp(prefix="seekgym-"))
            Finalize(self, _remove, [target], exitpriority=0)
        else:
            target = Path(self.folder) / f"text-{self.corpus.fingerprint[:16]}"
            target.mkdir(parents=True, exist_ok=True)
        path = target / CORPUS_FILE
        if path.exists():
            return path
        descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix="seekgym-")
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(raw_line(document) + "\n" for document in self.corpus)
        os.chmod(draft, 0o444)
        os.replace(draft, path)
        if self.folder is None:
            os.chmod(target, 0o555)
        return path


def default_runner(
    corpus: Corpus, folder: str | None = None, limits: Limits | None = None
) -> CorpusRunner:
    """Return the runner of a corpus, made once for each corpus object, folder and limits."""
    with _default_lock:
        made: dict[Any, CorpusRunner] = corpus.__dict__.setdefault("_runners", {})
        key = (folder, limits)
        if key not in made:
            made[key] = CorpusRunner(corpus, folder=folder, limits=limits)
        return made[key]


def shown_documents(lines: Sequence[str], runner: CorpusRunner) -> tuple[str, ...]:
    """Return the ids of the documents that some lines show, in full or in part, in order.

    A line shows a document if 40 characters of its text stand in it (or all of a shorter text)
    behind its id. A line without an id shows the document that alone holds the line's text.
    An id by itself shows nothing.
    """
    shown: dict[str, None] = {}
    others: list[str] = []
    for line in lines:
        found = list(_shown_by_id(line, runner.corpus))
        shown.update(dict.fromkeys(found))
        if len(line) >= _LEAST_SHOWN_CHARS and not _HEAD.search(line):
            others.append(line)
    if others:
        shown.update(dict.fromkeys(_shown_by_text(others[:_MOST_FRAGMENTS], runner)))
    return tuple(shown)


def _shown_by_id(line: str, corpus: Corpus) -> Iterator[str]:
    for match in _HEAD.finditer(line):
        document_id = json.loads(match[1])
        if document_id not in corpus:
            continue
        whole = raw_line(corpus[document_id])
        body = whole[whole.index('", "text": "') + len('", "text": "') : -2]
        rest = line[match.end() :].partition('", "text": "')[2]
        least = min(_LEAST_SHOWN_CHARS, len(body))
        pieces = (piece[:least] for piece in rest.split(" … "))
        if any(len(piece) == least and piece in body for piece in pieces):
            yield document_id


def _shown_by_text(lines: Sequence[str], runner: CorpusRunner) -> Iterator[str]:
    """Look lines up in the corpus, unless it is too large to be scanned for them."""
    size = runner.path.stat().st_size
    if size * len(lines) > _MOST_SCANNED_BYTES:
        return
    raw = runner.path.read_bytes()
    for line in lines:
        for text in (line, line.partition(":")[2], json.dumps(line, ensure_ascii=False)[1:-1]):
            place = raw.find(text.strip().encode()) if len(text) >= _LEAST_SHOWN_CHARS else -1
            if place < 0:
                continue
            start, end = raw.rfind(b"\n", 0, place) + 1, raw.find(b"\n", place)
            head = _HEAD.match(raw[start:end].decode())
            if head and raw.find(text.strip().encode(), end) < 0:
                yield json.loads(head[1])
            break


def _remove(folder: Path) -> None:
    os.chmod(folder, 0o755)
    shutil.rmtree(folder, ignore_errors=True)
