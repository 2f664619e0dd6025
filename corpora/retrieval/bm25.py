"""BM25 over a tantivy index, in memory or kept on disk.

BM25 as in Robertson & Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond",
with k1 = 1.2 and b = 0.75, the idf form ``ln(1 + (N - n + 0.5) / (n + 0.5))`` and document
lengths kept in one byte (exact up to 40 terms), as Lucene and tantivy do.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Self

import tantivy

from ..documents import Corpus, Document
from ..errors import BackendError, ConfigurationError
from .analysis import Analyzer, detect_language
from .base import Hit

__all__ = ["BM25Retriever", "default_retriever"]

_FORMAT = 1  # raise it when an index built before would rank otherwise
_FIELD = "text"
_HEAP_BYTES = 128_000_000
_SMALL_CORPUS = 50_000  # up to here one thread builds one segment
_SAMPLE_DOCUMENTS = 200
_MAX_CLAUSES = 20_000
_SAMPLE_CHARS = 1_000
_MANIFEST = "manifest.json"
_logger = logging.getLogger("seekgym")
_default_lock = threading.Lock()


class BM25Retriever:
    """Ranks a corpus by BM25 over title and text.

    A query is a bag of words: each distinct term counts once, stop words count only where there
    is nothing else, and no character is syntax. At most ``max_query_terms`` terms are used; a
    longer query is noted in the log and its later terms are left out. Safe to use from several
    threads. Pickles and copies share the corpus; an unpickled retriever builds or opens its
    index again when it is first asked.

    Args:
        corpus: What to rank.
        language: A code of ``analysis.LANGUAGES`` (chooses the stemmer), ``"any"`` for no
            stemming, or None to detect it from the corpus.
        index_dir: A folder to keep the index in, memory-mapped. An index found there is used
            if it was built whole, from the same documents and with the same analysis;
            otherwise, and where it is damaged, it is built. None keeps the index in memory.
        max_query_terms: The cap on distinct terms of a query.

    Raises:
        ConfigurationError: The language is unknown or the cap is below 1.
        BackendError: The index cannot be written or read.
    """

    _fields: ClassVar[tuple[str, ...]] = (_FIELD,)
    _format: ClassVar[int | str] = _FORMAT

    def __init__(
        self,
        corpus: Corpus,
        *,
        language: str | None = None,
        index_dir: str | os.PathLike[str] | None = None,
        max_query_terms: int = 1_024,
    ) -> None:
        if max_query_terms < 1:
            raise ConfigurationError(f"max_query_terms must be at least 1, got {max_query_terms}")
        self.corpus = corpus
        self.language = language or detect_language(_sample(corpus))
        self.index_dir = None if index_dir is None else Path(index_dir)
        self.max_query_terms = max_query_terms
        self._prepare()
        self._searcher: tantivy.Searcher | None = self._open()

    @property
    def name(self) -> str:
        """What this retriever is, with the settings that decide its rankings."""
        return f"bm25(language={self.language}, max_query_terms={self.max_query_terms})"

    def __repr__(self) -> str:
        """Name the retriever and its corpus."""
        return f"<BM25Retriever {self.name} over {self.corpus!r}>"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return for each query at most k hits, best first, ties by order in the corpus.

        Raises:
            ConfigurationError: k is below 1.
            BackendError: The index cannot be read.
        """
        if k < 1:
            raise ConfigurationError(f"k must be at least 1, got {k}")
        searcher = self._current_searcher()
        try:
            return [self._ranking(searcher, query, k) for query in queries]
        except (OSError, ValueError) as error:
            raise BackendError(f"the index of {self.corpus.name!r} failed: {error}") from error

    def frequency(self, term: str) -> int:
        """Return how many documents hold a term of the index."""
        return int(self._current_searcher().doc_freq(_FIELD, term))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same retriever: it is immutable, so copies of environments share it."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what to pickle: the settings and the corpus, not the index."""
        settings = ("corpus", "language", "index_dir", "max_query_terms")
        return {setting: self.__dict__[setting] for setting in settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the settings; the index is opened when it is first asked."""
        self.__dict__.update(state)
        self._prepare()
        self._searcher = None

    def _prepare(self) -> None:
        self._analyzer = Analyzer(self.language)
        builder = tantivy.SchemaBuilder()
        for field in self._fields:
            builder.add_text_field(field, tokenizer_name="seekgym", index_option="freq")
        self._schema = builder.add_unsigned_field("position", fast=True).build()
        self._clauses: dict[str, tuple[tantivy.Occur, tantivy.Query]] = {}  # the latest terms
        self._lock = threading.Lock()

    def _texts(self, document: Document) -> tuple[str, ...]:
        """Return what stands in each field."""
        return (f"{document.title}\n{document.text}",)

    def _current_searcher(self) -> tantivy.Searcher:
        if self._searcher is None:
            with self._lock:
                if self._searcher is None:
                    self._searcher = self._open()
        return self._searcher

    def _ranking(self, searcher: tantivy.Searcher, query: str, k: int) -> list[Hit]:
        terms = self._query_terms(query)
        if not terms:
            return []
        parsed = tantivy.Query.boolean_query([self._clause(term) for term in terms])
        return self._best(searcher, parsed, k)

    def _best(self, searcher: tantivy.Searcher, parsed: tantivy.Query, k: int) -> list[Hit]:
        """Return the k best hits of a query, ties by order in the corpus."""
        ids = self.corpus.ids
        limit = min(k, len(ids))
        if searcher.num_segments == 1:  # tantivy breaks ties by position within a segment
            found = searcher.search(parsed, limit, count=False).hits
            return [Hit(ids[address.doc], score) for score, address in found]
        while True:
            found = searcher.search(parsed, limit, count=False).hits
            if len(found) < limit or limit >= len(ids) or found[-1][0] < found[k - 1][0]:
                break
            limit = min(limit * 4, len(ids))  # the k-th score may be tied: look further
        addresses = [address for _, address in found]
        positions = [int(p or 0) for p in searcher.fast_field_values("position", addresses)]
        order = sorted(
            (-score, position) for (score, _), position in zip(found, positions, strict=True)
        )
        return [Hit(ids[position], -score) for score, position in order[:k]]

    def _clause(self, term: str) -> tuple[tantivy.Occur, tantivy.Query]:
        clause = self._clauses.get(term)
        if clause is None:
            if len(self._clauses) >= _MAX_CLAUSES:
                self._clauses.clear()
            query = tantivy.Query.term_query(self._schema, _FIELD, term, "freq")
            clause = self._clauses[term] = (tantivy.Occur.Should, query)
        return clause

    def _query_terms(self, query: str) -> list[str]:
        terms = self._analyzer.query_terms(query)
        if len(terms) > self.max_query_terms:
            _logger.warning(
                "a query has %d distinct terms; the first %d are used (max_query_terms)",
                len(terms),
                self.max_query_terms,
            )
            del terms[self.max_query_terms :]
        return terms

    def _open(self) -> tantivy.Searcher:
        try:
            if self.index_dir is None:
                return self._build(None)
            return self._open_kept(self.index_dir)
        except (OSError, ValueError) as error:
            raise BackendError(f"the index of {self.corpus.name!r} failed: {error}") from error

    def _open_kept(self, index_dir: Path) -> tantivy.Searcher:
        manifest = {
            "format": self._format,
            "tantivy": metadata.version("tantivy"),
            "language": self.language,
            "documents": self.corpus.fingerprint,
        }
        digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        folder = index_dir / digest[:16]
        if not _is_whole(folder, manifest):
            index_dir.mkdir(parents=True, exist_ok=True)
            with _only_builder(index_dir):
                if not _is_whole(folder, manifest):
                    self._build_folder(folder, manifest)
        try:
            return self._open_folder(folder)
        except (OSError, ValueError):  # damaged since it was built
            with _only_builder(index_dir):
                self._build_folder(folder, manifest)
            return self._open_folder(folder)

    def _open_folder(self, folder: Path) -> tantivy.Searcher:
        index = tantivy.Index.open(str(folder))
        index.register_tokenizer("seekgym", self._analyzer.pipeline)
        index.reload()
        return index.searcher()

    def _build_folder(self, folder: Path, manifest: dict[str, Any]) -> None:
        """Build beside the final place and rename, so that a half-built index is never found."""
        for leftover in (folder, *folder.parent.glob("building-*")):
            shutil.rmtree(leftover, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
        try:
            self._build(building)
            (building / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
            building.rename(folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)

    def _build(self, folder: Path | None) -> tantivy.Searcher:
        index = tantivy.Index(self._schema, None if folder is None else str(folder))
        index.register_tokenizer("seekgym", self._analyzer.pipeline)
        threads = 1 if len(self.corpus) <= _SMALL_CORPUS else (os.cpu_count() or 1)
        writer = index.writer(_HEAP_BYTES * threads, num_threads=threads)
        segment = self._analyzer.segment
        for position, document in enumerate(self.corpus):
            entry = tantivy.Document()
            for field, text in zip(self._fields, self._texts(document), strict=True):
                entry.add_text(field, segment(text))
            entry.add_unsigned("position", position)
            writer.add_document(entry)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        return index.searcher()


def default_retriever(corpus: Corpus, index_dir: str | None = None) -> BM25Retriever:
    """Return the BM25 retriever of a corpus, made once for each corpus object and folder.

    Environments over the same corpus so share one read-only index; it goes with the corpus.
    """
    with _default_lock:
        made: dict[str | None, BM25Retriever] = corpus.__dict__.setdefault("_retrievers", {})
        if index_dir not in made:
            made[index_dir] = BM25Retriever(corpus, index_dir=index_dir)
        return made[index_dir]


@contextmanager
def _only_builder(index_dir: Path) -> Iterator[None]:
    """Wait until no other process builds in the folder; the lock ends with its process."""
    import fcntl  # not on every system, and needed only for an index on disk

    with open(index_dir / "lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_whole(folder: Path, manifest: dict[str, Any]) -> bool:
    try:
        return bool(json.loads((folder / _MANIFEST).read_text(encoding="utf-8")) == manifest)
    except (OSError, ValueError):
        return False


def _sample(corpus: Corpus) -> list[str]:
    """Return the start of some documents, evenly spread, for detecting the language."""
    stride = max(1, len(corpus) // _SAMPLE_DOCUMENTS)
    documents = (corpus[position] for position in range(0, len(corpus), stride))
    return [document.text[:_SAMPLE_CHARS] for document in documents]
