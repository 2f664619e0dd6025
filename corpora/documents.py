"""Documents and corpora: what there is to find."""

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self, overload

from .errors import CorpusError
from .text import replace_surrogates

__all__ = ["Corpus", "Document", "Record", "fault_of_id", "read_jsonl", "with_tuples"]

_MAX_ID_CHARS = 200
_ID_FIELDS = ("id", "evidence", "links", "document")
_NOT_IN_IDS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\[\]]")


@dataclass(frozen=True, slots=True)
class Document:
    """One thing that can be found and read.

    Attributes:
        id: Unique in its corpus.
        title: A name for people and for retrieval.
        text: The whole text.
        url: An address, where the document has one.
        links: Ids of the documents that this one links to.
    """

    id: str
    title: str
    text: str
    url: str | None = None
    links: tuple[str, ...] = ()


class Corpus(Sequence[Document]):
    """An immutable sequence of documents, reachable by position and by id.

    ``corpus[3]`` is the fourth document, ``corpus["h9"]`` the one with that id. Iteration is in
    a fixed order. A subclass whose documents are rendered from facts passes ``ids`` and
    ``render`` and never holds their texts.

    Args:
        ids: The documents' ids, in order, each once.
        render: Gives the document at a position. Must always give the same one.
        name: What the corpus is called in messages and reports.
        fingerprint: A stable hash of the content, if one is known without reading it all.

    Raises:
        CorpusError: The corpus is empty, or an id appears twice.
    """

    def __init__(
        self,
        ids: Sequence[str],
        render: Callable[[int], Document],
        *,
        name: str,
        fingerprint: str | None = None,
    ) -> None:
        if not ids:
            raise CorpusError(f"corpus {name!r} has no documents; it needs at least one")
        self.name = name
        self.ids = ids
        self._render = render
        self._positions = {document_id: position for position, document_id in enumerate(ids)}
        self._known_fingerprint = fingerprint
        if len(self._positions) != len(ids):
            twice = next(i for p, i in enumerate(ids) if self._positions[i] != p)
            raise CorpusError(f"corpus {name!r}: id {twice!r} appears twice; ids must be unique")

    @classmethod
    def from_documents(cls, documents: Iterable[Document], *, name: str = "documents") -> Self:
        """Build a corpus from documents that are held in memory.

        Raises:
            CorpusError: There is none, or one has a field that cannot be used.
        """
        held = tuple(documents)
        for number, document in enumerate(held, start=1):
            if not isinstance(document, Document):
                raise CorpusError(
                    f"corpus {name!r}, document {number}: must be a Document, "
                    f"got {type(document).__name__}"
                )
            for field in ("id", "title", "text"):
                if not isinstance(getattr(document, field), str):
                    raise CorpusError(
                        f"corpus {name!r}, document {number}, field {field!r}: must be a text, "
                        f"got {getattr(document, field)!r:.60}"
                    )
            if fault := fault_of_id(document.id):
                raise CorpusError(f"corpus {name!r}, document {number}, field 'id': {fault}")
        return cls([document.id for document in held], held.__getitem__, name=name)

    @classmethod
    def from_jsonl(cls, path: str | os.PathLike[str]) -> Self:
        """Read one JSON object a line: ``id``, ``text``, and optionally ``title, url, links``.

        Plain or .gz. A byte-order mark, CRLF and blank lines are fine.

        Raises:
            CorpusError: With file, line and field.
        """
        seen: dict[str, int] = {}
        documents = []
        for record in read_jsonl(path):
            document = _document_from(record)
            if document.id in seen:
                record.fail("id", f"{document.id!r} was already used in line {seen[document.id]}")
            seen[document.id] = record.line
            documents.append(document)
        if not documents:
            raise CorpusError(f"{path}: no documents; it needs one JSON object a line")
        return cls.from_documents(documents, name=Path(path).name)

    @classmethod
    def from_folder(cls, path: str | os.PathLike[str], *, pattern: str = "**/*.txt") -> Self:
        """Read every file that matches ``pattern``; the path under the folder is the id.

        Raises:
            CorpusError: The folder is missing or has no such file, or a file is not UTF-8.
        """
        root = Path(path)
        if not root.is_dir():
            raise CorpusError(f"{root}: not a folder; pass a folder of text files")
        files = sorted(file for file in root.glob(pattern) if file.is_file())
        if not files:
            raise CorpusError(f"{root}: no file matches {pattern!r}; pass pattern=")
        documents = (
            Document(
                replace_surrogates(file.relative_to(root).as_posix()),
                replace_surrogates(file.stem),
                _read_text(file),
            )
            for file in files
        )
        return cls.from_documents(documents, name=root.name)

    @overload
    def __getitem__(self, key: int | str) -> Document: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Document]: ...
    def __getitem__(self, key: int | str | slice) -> Document | Sequence[Document]:
        """Return the document at a position or with an id, or the documents of a slice."""
        if isinstance(key, str):
            return self._render(self.position(key))
        if isinstance(key, slice):
            return tuple(self._render(position) for position in range(*key.indices(len(self))))
        return self._render(range(len(self))[key])

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.ids)

    def __iter__(self) -> Iterator[Document]:
        """Give every document, in order, each rendered when it is asked for."""
        return map(self._render, range(len(self)))

    def __contains__(self, item: object) -> bool:
        """Tell whether an id, or a document's id, is here."""
        try:
            self.position(item.id if isinstance(item, Document) else item)  # type: ignore[arg-type]
        except (KeyError, TypeError):
            return False
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same corpus: it is immutable, so copies of environments share it."""
        return self

    def __repr__(self) -> str:
        """Name the corpus and its size."""
        return f"<{type(self).__name__} {self.name!r}: {len(self)} documents>"

    def position(self, document_id: str) -> int:
        """Return where in the order a document stands; KeyError if it is not here."""
        return self._positions[document_id]

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of every document, the same on every machine."""
        if self._known_fingerprint is not None:
            return self._known_fingerprint
        digest = hashlib.sha256()
        for document in self:
            fields = [document.id, document.title, document.text, document.url, *document.links]
            digest.update(json.dumps(fields, ensure_ascii=False).encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of a file, with the place it came from, for errors that name it."""

    path: str
    line: int
    values: Mapping[str, Any]

    def fail(self, field: str, reason: str) -> NoReturn:
        """Raise a CorpusError that names file, line and field."""
        raise CorpusError(f"{self.path}, line {self.line}, field {field!r}: {reason}")

    def text(self, field: str, default: str | None = None) -> str:
        """Return a text field, cleaned; without a default it must be there and not be empty."""
        value = self.values.get(field)
        value = default if value is None else value
        if value is None:
            self.fail(field, "is missing")
        if type(value) is int and field in _ID_FIELDS:
            value = str(value)
        if not isinstance(value, str):
            self.fail(field, f"must be a text, got {type(value).__name__}")
        if "\0" in value:
            self.fail(field, "holds a NUL character; remove it")
        if default is None and not value.strip():
            self.fail(field, "is empty")
        return replace_surrogates(value)

    def texts(self, field: str, *, required: bool = False) -> tuple[str, ...]:
        """Return a list of texts as a tuple, cleaned."""
        values = self.values.get(field)
        if values is None and not required:
            return ()
        if values is None:
            self.fail(field, "is missing")
        if field in _ID_FIELDS and isinstance(values, list):
            values = [str(value) if type(value) is int else value for value in values]
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            self.fail(field, f"must be a list of texts, got {values!r:.60}")
        if required and not values:
            self.fail(field, "is empty; it needs at least one")
        if any("\0" in value for value in values):
            self.fail(field, "holds a NUL character; remove it")
        return tuple(replace_surrogates(value) for value in values)


def fault_of_id(document_id: str) -> str | None:
    """Return why a text cannot be an id, or None: an agent must be able to read and repeat it.

    Example:
        >>> fault_of_id("h9"), fault_of_id(" h9")
        (None, "' h9' begins or ends with a space")
    """
    if not document_id.strip():
        return "is empty"
    if document_id != document_id.strip():
        return f"{document_id!r:.60} begins or ends with a space"
    if len(document_id) > _MAX_ID_CHARS:
        return f"{document_id[:40]!r}... has {len(document_id)} characters; 200 are the most"
    if _NOT_IN_IDS.search(document_id):
        return f"{document_id!r:.60} holds a bracket or a control character"
    return None


def with_tuples(value: Any) -> Any:
    """Return a value read from JSON with tuples for its lists, as arguments have them.

    Example:
        >>> with_tuples({"hops": [1, 2]})
        {'hops': (1, 2)}
    """
    if isinstance(value, Mapping):
        return {key: with_tuples(item) for key, item in value.items()}
    return tuple(map(with_tuples, value)) if isinstance(value, list) else value


def read_jsonl(path: str | os.PathLike[str]) -> Iterator[Record]:
    """Give each JSON object of a plain or .gz file.

    Raises:
        CorpusError: The file cannot be read, or a line is not UTF-8, JSON, or an object.
    """
    for line, raw in _raw_lines(path):
        try:
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{path}, line {line}: not UTF-8 (byte {error.start}); convert the file to UTF-8"
            ) from None
        if not text.strip():
            continue
        if "\0" in text:
            raise CorpusError(f"{path}, line {line}: holds a NUL byte; remove it")
        try:
            values = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{path}, line {line}: not JSON ({error})") from None
        if not isinstance(values, dict):
            raise CorpusError(
                f"{path}, line {line}: must be a JSON object, got {type(values).__name__}"
            )
        yield Record(str(path), line, values)


def _raw_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    try:
        with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as file:
            yield from enumerate(file, start=1)
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: cannot be read ({error})") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _document_from(record: Record) -> Document:
    if record.values.get("text") is None:
        record.fail("text", "is missing")
    document_id = record.text("id")
    if fault := fault_of_id(document_id):
        record.fail("id", fault)
    return Document(
        id=document_id,
        title=record.text("title", ""),
        text=record.text("text", ""),
        url=record.text("url", "") or None,
        links=record.texts("links"),
    )


def _read_text(file: Path) -> str:
    raw = file.read_bytes()
    if b"\0" in raw:
        line = raw.count(b"\n", 0, raw.index(b"\0")) + 1
        raise CorpusError(f"{file}, line {line}, field 'text': holds a NUL byte; remove it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{file}, line {line}, field 'text': not UTF-8; convert the file to UTF-8"
        ) from None
