"""The data sets inside the package, and how a name or a path becomes a corpus or tasks."""

import os
from functools import cache
from pathlib import Path

from .documents import Corpus
from .errors import CorpusError
from .tasks import TaskSet

__all__ = ["load_corpus", "load_tasks", "shipped_names", "tasks_beside"]

_DATA = Path(__file__).parent / "data"


def shipped_names() -> list[str]:
    """Return the names of the data sets inside the package."""
    return sorted(folder.name for folder in _DATA.iterdir() if folder.is_dir())


def load_corpus(name_or_path: str | os.PathLike[str]) -> Corpus:
    """Return a shipped corpus by name, or one read from a JSONL file or a folder.

    A folder that holds ``corpus.jsonl`` gives that file; any other gives its text files.

    Raises:
        CorpusError: There is no such data set, file or folder, or its data is bad.
    """
    name = os.fspath(name_or_path)
    if name in shipped_names():
        return _shipped_corpus(name)
    path = _path("corpus", name)
    if (path / "corpus.jsonl").is_file():
        return Corpus.from_jsonl(path / "corpus.jsonl")
    if path.is_dir():
        return Corpus.from_folder(path)
    if path.is_file():
        return Corpus.from_jsonl(path)
    raise _missing("corpus", name)


def load_tasks(name_or_path: str | os.PathLike[str], corpus: Corpus) -> TaskSet:
    """Return the tasks of a shipped data set, or those of a JSONL file, checked with a corpus.

    A folder gives the ``tasks.jsonl`` in it.

    Raises:
        CorpusError: There is no such data set or file, or its data is bad.
    """
    name = os.fspath(name_or_path)
    if name in shipped_names():
        if corpus is _shipped_corpus(name):
            return _shipped_tasks(name)
        return TaskSet.from_jsonl(_DATA / name / "tasks.jsonl", corpus=corpus)
    path = _path("tasks", name)
    if path.is_dir():
        path = path / "tasks.jsonl"
    if not path.is_file():
        raise _missing("tasks", str(path))
    return TaskSet.from_jsonl(path, corpus=corpus)


def tasks_beside(corpus: str | os.PathLike[str]) -> str:
    """Return where the tasks of a corpus lie: a shipped name, or the folder of a file."""
    name = os.fspath(corpus)
    return name if name in shipped_names() or not Path(name).is_file() else str(Path(name).parent)


def _path(what: str, name: str) -> Path:
    if not name:
        raise CorpusError(f"{what} is an empty text; give a name, a file or a folder")
    return Path(name)


@cache
def _shipped_corpus(name: str) -> Corpus:
    return Corpus.from_jsonl(_DATA / name / "corpus.jsonl")


@cache
def _shipped_tasks(name: str) -> TaskSet:
    path = _DATA / name / "tasks.jsonl"
    return TaskSet.from_jsonl(path, corpus=_shipped_corpus(name))


def _missing(what: str, name: str) -> CorpusError:
    return CorpusError(
        f"{what} {name!r}: no such file or folder, and no data set of that name; "
        f"shipped: {', '.join(shipped_names())}"
    )
