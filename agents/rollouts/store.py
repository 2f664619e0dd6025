"""A rollout on disk: each episode as soon as it ends, so that a killed run goes on."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

from ...corpora.documents import read_jsonl
from ...corpora.errors import ConfigurationError, CorpusError
from .trajectory import Trajectory, encodable

__all__ = ["RunFile"]

_VERSION = 1
_MAX_SHOWN_CHARS = 80


class RunFile:
    """The trajectories of one run, one a line, and beside them a file that says which run it is.

    A line is written and flushed as soon as its episode has ended. A run that was killed, in the
    middle of a line too, is opened again: the broken line is cut off, and so are the episodes
    that were lost to a failure, since they are to be played again. One process at a time holds
    the file.

    Attributes:
        finished: The ids of the episodes that need not be played again.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with RunFile.open(f"{folder}/x.jsonl", {"seed": 0}) as run:
        ...         sorted(run.finished)
        []
    """

    def __init__(self, path: Path, file: IO[bytes], finished: set[str]) -> None:
        self.finished = finished
        self._path = path
        self._file = file

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str], run: Mapping[str, Any]) -> Iterator[Self]:
        """Open the file of a run, new or begun.

        Args:
            path: The file of trajectories; its folder is made.
            run: All that decides the episodes.

        Raises:
            ConfigurationError: The file is of another run, or another process writes it.
            CorpusError: A line of the file, apart from the last, cannot be read.
        """
        place = Path(path)
        if not place.name or place.is_dir() or place.suffix == ".gz":
            raise ConfigurationError(f"path must name a plain file, got {str(path)!r}")
        place.parent.mkdir(parents=True, exist_ok=True)
        with _held(place) as about:
            _check_run(place, about, {"version": _VERSION, **encodable(run)})
            finished = _repair(place)
            with open(place, "ab") as file:
                yield cls(place, file, finished)

    def write(self, trajectory: Trajectory) -> None:
        """Add an episode; it is in the file when this returns."""
        self._file.write(trajectory.to_json().encode() + b"\n")
        self._file.flush()

    def read(self) -> Iterator[Trajectory]:
        """Give each trajectory, as it stands in the file."""
        return map(Trajectory.from_record, read_jsonl(self._path))


@contextmanager
def _held(path: Path) -> Iterator[IO[bytes]]:
    """Give the file that says which run it is, for this process alone.

    The lock goes with the process, however that ends.
    """
    import fcntl  # not on every system, and needed only here

    with open(path.with_name(f"{path.name}.run"), "a+b") as about:
        try:
            fcntl.flock(about, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                f"{path}: another process writes this run; wait for it, or pass another path"
            ) from None
        yield about


def _check_run(path: Path, about: IO[bytes], run: Mapping[str, Any]) -> None:
    """Refuse the file of another run; write down which run a new one is."""
    about.seek(0)
    said = about.read()
    if not path.exists() or not path.stat().st_size:  # nothing is there that could be lost
        about.truncate(0)
        about.write(json.dumps(run, ensure_ascii=False, allow_nan=False).encode())
        about.flush()
        return
    try:
        was = dict(json.loads(said))
    except (ValueError, TypeError):
        raise ConfigurationError(
            f"{path} is there, and {path.name}.run does not say which run it is; "
            "pass another path, or remove it"
        ) from None
    now = json.loads(json.dumps(run))
    changed = [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]
    if changed:
        differences = "; ".join(_difference(name, was.get(name), now.get(name)) for name in changed)
        raise ConfigurationError(
            f"{path} is of another run: {differences}; pass another path, or the arguments it had"
        )


def _difference(name: str, was: Any, now: Any) -> str:
    """Say what differs; of two objects, only their fields that do."""
    if isinstance(was, dict) and isinstance(now, dict):
        fields = [field for field in sorted({*was, *now}) if was.get(field) != now.get(field)]
        return "; ".join(_difference(f"{name} {f}", was.get(f), now.get(f)) for f in fields)
    return f"{name} was {_shown(was)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    return f"{value!r:.{_MAX_SHOWN_CHARS}}"


def _repair(path: Path) -> set[str]:
    """Cut off what a killed run left unfinished; return the ids of what is finished."""
    if not path.exists():
        return set()
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    kept: dict[str, bytes] = {}
    for line in whole.splitlines(keepends=True):
        try:
            values = json.loads(line)
            trajectory_id, outcome = values["id"], values["outcome"]
            is_valid = outcome.get("valid") is not False
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            fault = f"{type(error).__name__}: {error}"
            raise CorpusError(f"{path}: a line is no trajectory ({fault})") from None
        if is_valid:
            kept[trajectory_id] = line
    remaining = b"".join(kept.values())
    if remaining != content:
        new = path.with_name(f"{path.name}.new")
        with open(new, "wb") as file:
            file.write(remaining)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    return set(kept)
