"""The command that indexes raw files for shell commands."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ..corpora.errors import ConfigurationError
from ..corpora.shell.build import refresh_index
from ..corpora.shell.index import MAGIC, index_path
from .console import console, errors

__all__ = ["index"]


def index(
    path: Annotated[Path, typer.Argument(help="A folder of raw files, or one file.")],
    out: Annotated[
        Path | None, typer.Option(help="Where the index is kept; beside PATH if left out.")
    ] = None,
) -> None:
    """Build or refresh the index that shell commands over a corpus are narrowed with.

    It is built anew when a file has another size, time or inode than it had.
    """
    if not path.exists():
        raise ConfigurationError(f"{path}: no such file or folder")
    root, names = (path, None) if path.is_dir() else (path.parent, [path.name])
    place = index_path(path) if out is None else out
    _check_place(place)
    columns = (TextColumn("Indexing"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors) as progress:
        bar = progress.add_task("index", total=None)

        def show(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total)

        made, is_new = refresh_index(root, place, names=names, on_progress=show)
    size = sum(file.stamp.size for file in made.files.values())
    verb = "Wrote" if is_new else "Still current:"
    share = f"{made.size_bytes / size:.0%}" if size else "-"
    console.print(
        f"{verb} {place}: {len(made.files):,} files, {size:,} bytes, index {share} of that",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _check_place(place: Path) -> None:
    """Refuse to write over anything that is no index."""
    if place.is_dir():
        raise ConfigurationError(f"--out must name a file, {place} is a folder")
    if place.is_file() and place.stat().st_size:
        with open(place, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ConfigurationError(
                    f"{place} is no index, and would be lost; give --out another name"
                )
