"""A cassette: every answer of the live web on disk, so that it can be given again without it.

The folder holds ``index.jsonl``, one answer a line, and ``objects/``, the bodies, each under the
SHA-256 of its content. Several processes may write one cassette: a line is added under a lock, a
body appears whole or not at all. Of several answers to one request the last decides, and one that
shows something over one that is a fault.
"""

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import BackendError, ConfigurationError, CorpusError
from .answers import Answer
from .scrubbing import scrub, scrub_text

__all__ = ["Cassette"]

_INDEX = "index.jsonl"


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the index says of an answer; ``body`` is the name of an object, or empty."""

    url: str
    content_type: str
    body: str
    fault: str
    reason: str


class Cassette:
    """Answers by what was asked. Safe to use from several threads and processes.

    Args:
        folder: Where it lies; made by the first answer that is written.
        secrets: What is never written: each is replaced wherever it stands.
        keeps_faults: Whether faults that were recorded before count as answers.

    Raises:
        CorpusError: A line of the index, apart from a last one that broke off, cannot be read.

    Example:
        >>> import tempfile
        >>> cassette = Cassette(tempfile.mkdtemp())
        >>> request = {"fetch": "https://example.org/"}
        >>> answer = Answer("https://example.org/", "text/plain", b"Hello.")
        >>> cassette.write(request, answer) == cassette.read(request)
        True
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        secrets: Sequence[str] = (),
        keeps_faults: bool = True,
    ) -> None:
        self._folder = Path(folder)
        self._secrets = tuple(secrets)
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        for key, entry in _read_index(self._folder / _INDEX):
            if keeps_faults or not entry.fault:
                self._keep(key, entry)

    @classmethod
    def existing(cls, folder: str | os.PathLike[str]) -> "Cassette":
        """Open a cassette to replay it.

        Raises:
            ConfigurationError: There is none.
            CorpusError: It cannot be read.
        """
        if not (Path(folder) / _INDEX).is_file():
            raise ConfigurationError(
                f"replay: there is no cassette in {str(folder)!r} (no {_INDEX}); "
                "record one first, with record="
            )
        return cls(folder)

    def __len__(self) -> int:
        """Return how many requests have an answer."""
        return len(self._entries)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What was asked, in the order in which it was first asked."""
        return [json.loads(key) for key in list(self._entries)]

    @property
    def fingerprint(self) -> str:
        """A SHA-256 of all requests and answers, whatever order they were written in."""
        lines = sorted(json.dumps([key, asdict(entry)]) for key, entry in self._entries.items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def read(self, request: Mapping[str, Any]) -> Answer | None:
        """Return the answer to a request, or None if there is none.

        Raises:
            BackendError: The body is gone, or is not what was recorded.
        """
        entry = self._entries.get(scrub_text(_key(request), self._secrets))
        if entry is None:
            return None
        body = self._read_object(entry.body) if entry.body else b""
        return Answer(entry.url, entry.content_type, body, entry.fault, entry.reason)

    def write(self, request: Mapping[str, Any], answer: Answer) -> Answer:
        """Keep an answer, and return it as it will be given again: without secrets.

        Raises:
            BackendError: The disk does not take it.
        """
        body = scrub(answer.body, self._secrets)
        name = hashlib.sha256(body).hexdigest() if body else ""
        texts = (answer.url, answer.content_type, answer.fault, answer.reason)
        url, content_type, fault, reason = (scrub_text(text, self._secrets) for text in texts)
        entry = _Entry(url, content_type, name, fault, reason)
        key = scrub_text(_key(request), self._secrets)
        line = json.dumps({"request": json.loads(key), **asdict(entry)}) + "\n"
        try:
            with self._lock:
                if name:
                    self._write_object(name, body)
                _append(self._folder / _INDEX, line.encode("ascii"))
                self._keep(key, entry)
        except OSError as error:
            raise BackendError(f"record: {error}") from None
        return Answer(url, content_type, body, fault, reason)

    def _keep(self, key: str, entry: _Entry) -> None:
        known = self._entries.get(key)
        if known is None or known.fault or not entry.fault:
            self._entries[key] = entry

    def _object(self, name: str) -> Path:
        return self._folder / "objects" / name[:2] / name

    def _read_object(self, name: str) -> bytes:
        path = self._object(name)
        try:
            body = path.read_bytes()
        except OSError as error:
            raise BackendError(f"the cassette lacks {path} ({error.strerror})") from None
        if hashlib.sha256(body).hexdigest() != name:
            raise BackendError(f"the cassette was changed: {path} is not what was recorded")
        return body

    def _write_object(self, name: str, body: bytes) -> None:
        path = self._object(name)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{name}.{os.getpid()}-{threading.get_ident()}.new")
        new.write_bytes(body)
        os.replace(new, path)


def _key(request: Mapping[str, Any]) -> str:
    return json.dumps(request, sort_keys=True)


def _append(path: Path, line: bytes) -> None:
    """Add a line for good; what a killed process left of one is cut off."""
    import fcntl  # not on every system, and needed only here

    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # goes with the file, however that is closed
        _cut_torn_line(file)
        file.write(line)
        file.flush()


def _cut_torn_line(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if size and file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _read_index(path: Path) -> list[tuple[str, _Entry]]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror})") from None
    lines = content.split(b"\n")[:-1]  # after the last newline: nothing, or what broke off
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            request = values.pop("request")
            entry = _Entry(**values)
            if not all(isinstance(value, str) for value in values.values()):
                raise TypeError("a field is no text")
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise CorpusError(f"{path}, line {number}: not an answer ({error})") from None
        entries.append((_key(request), entry))
    return entries
