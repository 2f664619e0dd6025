"""The folder of one training run: settings, log and checkpoints that outlive a kill."""

import json
import math
import numbers
import os
import re
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from ...corpora.errors import ConfigurationError, CorpusError, SeekgymError

__all__ = ["RunFolder", "newest_checkpoint", "reading_checkpoint"]

_CHECKPOINT = re.compile(r"step-(\d{8,})")
_HIDDEN = "."  # what begins with it is unfinished, or about to be removed
_MAX_SHOWN_CHARS = 80


def newest_checkpoint(path: str | os.PathLike[str]) -> Path | None:
    """Return the folder of a run's last whole checkpoint, None if there is none."""
    saved = _saved(Path(path) / "checkpoints")
    return saved[-1][1] if saved else None


@contextmanager
def reading_checkpoint(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with the files of a checkpoint into an error that names it.

    Raises:
        ConfigurationError: Something went wrong.
    """
    try:
        yield
    except SeekgymError:
        raise
    except Exception as error:  # what damaged bytes do to a reader is beyond listing
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigurationError(
            f"checkpoint {path} cannot be read ({reason}); remove that folder to go on from the "
            "one before it"
        ) from error


def _saved(checkpoints: Path) -> list[tuple[int, Path]]:
    """Return step and folder of each whole checkpoint, in order."""
    if not checkpoints.exists():
        return []
    found = ((_CHECKPOINT.fullmatch(p.name), p) for p in checkpoints.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


class RunFolder:
    """A folder of one training run, which one process at a time writes.

    It holds ``config.json``, ``log.jsonl`` (one line each time something was measured, with its
    ``step``) and ``checkpoints/step-00000040`` and so on; ``draw_curves`` adds the curves. A kill
    at any instant leaves a folder that can be resumed: a checkpoint gets its name only when it is
    whole and on the disk, and a line that was cut off is dropped.

    Attributes:
        path: The folder.
        config: The settings of the run, as they stand in ``config.json``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = RunFolder.begin(f"{folder}/x", {"seed": 0}, resume=False)
        ...     run.log({"step": 10, "loss": 0.5})
        ...     run.save(10, lambda place: (place / "weights").write_text("..."))
        ...     (run.newest()[0], run.records())
        (10, [{'step': 10, 'loss': 0.5}])
    """

    def __init__(self, path: Path, config: dict[str, Any], lock: int) -> None:
        self.path = path
        self.config = config
        self._log = path / "log.jsonl"
        self._checkpoints = path / "checkpoints"
        self._unlock = weakref.finalize(self, os.close, lock)

    @classmethod
    def begin(
        cls, path: str | os.PathLike[str], config: Mapping[str, Any], *, resume: bool
    ) -> Self:
        """Open the folder of a run, new or, with ``resume``, begun.

        Args:
            path: The folder; it is made.
            config: All that decides the run, as JSON could hold it.
            resume: Go on with the run that the folder holds; a new one begins if it holds none.
                One of which nothing was logged or saved is none: a start that failed.

        Raises:
            ConfigurationError: The folder holds a run and ``resume`` is not set, or one with other
                settings, or files of something else; or another process writes this run.
        """
        place = Path(path)
        wanted = _as_json(config)
        _check_is_ours(place)
        place.mkdir(parents=True, exist_ok=True)
        lock = _lock(place)
        try:
            _check_config(place, wanted, resume=resume)
        except BaseException:
            os.close(lock)
            raise
        run = cls(place, wanted, lock)
        run._clean_up()
        return run

    def close(self) -> None:
        """Let another take the folder; the end of the process does so too."""
        self._unlock()

    def log(self, values: Mapping[str, float | int | str | None]) -> None:
        """Add one line to the log; it is on the disk when this returns.

        A number that is not finite is written as null: it could not be computed.

        Raises:
            ConfigurationError: ``step`` is missing or no whole number.
        """
        record = {name: _plain(value) for name, value in values.items()}
        if type(record.get("step")) is not int:
            raise ConfigurationError(
                f"values: 'step' must be a whole number, got {values.get('step')!r}"
            )
        line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with open(self._log, "ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def records(self) -> list[dict[str, Any]]:
        """Return the lines of the log.

        Raises:
            CorpusError: A line cannot be read.
        """
        if not self._log.exists():
            return []
        found = []
        for number, line in enumerate(self._log.read_bytes().splitlines(), start=1):
            try:
                record = dict(json.loads(line))
                record["step"] = int(record["step"])
            except (ValueError, TypeError, KeyError) as error:
                raise CorpusError(f"{self._log}:{number}: not a line of a log ({error})") from None
            found.append(record)
        return found

    def save(self, step: int, write: Callable[[Path], object], *, keep: int = 2) -> None:
        """Make a checkpoint, whole or not at all, and remove the oldest ones.

        A step that was saved before keeps what it has.

        Args:
            step: Names the checkpoint.
            write: Fills the empty folder that it is given.
            keep: How many checkpoints stay, at least 1.
        """
        if keep < 1:
            raise ConfigurationError(f"keep must be at least 1, got {keep}")
        target = self._checkpoints / f"step-{step:08}"
        if not target.exists():
            fresh = self._checkpoints / f"{_HIDDEN}{target.name}"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            write(fresh)
            _sync_tree(fresh)
            os.rename(fresh, target)
            _sync(self._checkpoints)
        for _, old in self._saved()[:-keep]:
            leaving = old.with_name(f"{_HIDDEN}{old.name}")  # never half a checkpoint by its name
            os.rename(old, leaving)
            shutil.rmtree(leaving)

    def newest(self) -> tuple[int, Path] | None:
        """Return the step and the folder of the last whole checkpoint, None if there is none."""
        saved = self._saved()
        return saved[-1] if saved else None

    def resume_point(self) -> tuple[int, Path] | None:
        """Return what ``newest`` does, and drop what was logged after it: it is done again."""
        saved = self.newest()
        self.trim(-1 if saved is None else saved[0])
        return saved

    def trim(self, step: int) -> None:
        """Drop the lines of the log after a step, so that a resumed run logs none twice."""
        kept = [record for record in self.records() if record["step"] <= step]
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)
        _replace(self._log, text.encode())

    def _saved(self) -> list[tuple[int, Path]]:
        return _saved(self._checkpoints)

    def _clean_up(self) -> None:
        """Remove what a kill left unfinished."""
        if self._checkpoints.exists():
            for path in sorted(self._checkpoints.glob(f"{_HIDDEN}step-*")):
                shutil.rmtree(path)
        if self._log.exists():
            content = self._log.read_bytes()
            os.truncate(self._log, content.rfind(b"\n") + 1)


def _as_json(config: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(dict(config), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"config must be what JSON can hold: {error}") from None


def _check_is_ours(path: Path) -> None:
    """Refuse a file, and a folder of something else: files would be lost among others."""
    if not path.exists():
        return
    if not path.is_dir():
        raise ConfigurationError(f"{path} is a file; pass a folder for the run")
    names = sorted(p.name for p in path.iterdir() if not p.name.startswith(_HIDDEN))
    if names and "config.json" not in names:
        raise ConfigurationError(
            f"{path} holds {names[0]!r} and no config.json, so it is no training run; "
            "pass another folder"
        )


def _lock(path: Path) -> int:
    """Take the folder for this process alone; the lock goes with the process."""
    import fcntl  # not on every system, and needed only here

    lock = os.open(path / f"{_HIDDEN}lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise ConfigurationError(
            f"{path}: another process writes this run; wait for it, or pass another folder"
        ) from None
    return lock


def _check_config(path: Path, wanted: dict[str, Any], *, resume: bool) -> None:
    """Write the settings of a new run down; compare those of one that goes on."""
    place = path / "config.json"
    is_begun = _saved(path / "checkpoints") or _has_lines(path / "log.jsonl")
    if not place.exists() or not is_begun:
        _replace(place, json.dumps(wanted, indent=2, ensure_ascii=False).encode() + b"\n")
        return
    if not resume:
        raise ConfigurationError(
            f"{path} holds a run already; resume it (--resume), or pass another folder (--out)"
        )
    try:
        was = dict(json.loads(place.read_bytes()))
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{place} is no JSON object ({error}); pass another folder") from (
            None
        )
    names = [name for name in sorted({*was, *wanted}) if was.get(name) != wanted.get(name)]
    if names:
        told = "; ".join(
            f"{name} was {_shown(was.get(name))}, is {_shown(wanted.get(name))}" for name in names
        )
        raise ConfigurationError(
            f"{path} holds a run with other settings: {told}; pass those it had, or another folder"
        )


def _has_lines(log: Path) -> bool:
    return log.exists() and log.stat().st_size > 0


def _shown(value: Any) -> str:
    return f"{value!r:.{_MAX_SHOWN_CHARS}}"


def _plain(value: Any) -> float | int | str | None:
    """Return a value as JSON holds it: numbers of any library, none that is not finite."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None


def _replace(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    fresh = path.with_name(f"{_HIDDEN}{path.name}.new")
    with open(fresh, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    _sync(path.parent)


def _sync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def _sync(path: Path) -> None:
    """Have a file or folder on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
