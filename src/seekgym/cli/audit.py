"""The command ``audit``: which documents of a finished run gave their tasks away."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..agents.rollouts import read_trajectories
from ..corpora.documents import read_jsonl
from ..corpora.errors import ConfigurationError
from ..corpora.live import LeakRules
from ..leaderboard.audit import LeakedDocument
from ..leaderboard.audit import audit as find_leaked
from .console import console, printable

__all__ = ["audit"]

_FILE = "trajectories.jsonl"


def audit(
    run: Annotated[Path, typer.Argument(help=f"A folder with {_FILE}, or such a file.")],
    domain: Annotated[
        list[str] | None, typer.Option(help="A host that no page may be of, repeatable.")
    ] = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option(help="A regular expression that no address may fit, repeatable."),
    ] = None,
    canary: Annotated[
        list[str] | None, typer.Option(help="A text that marks a benchmark, repeatable.")
    ] = None,
    forbidden: Annotated[
        Path | None,
        typer.Option(help="JSONL: an object with task and texts a line; no 13 words of a text."),
    ] = None,
) -> None:
    """List each retrieved document or page that gave its task away.

    That is: it holds a canary, 13 words in a row of a forbidden text, the question word by word,
    or 8 words of the question in a row together with a gold answer. Exit code 1 if there is one.
    """
    path = run / _FILE if run.is_dir() else run
    if not path.is_file():
        raise ConfigurationError(f"{run}: there is no {_FILE}; pass the folder of a finished run")
    rules = LeakRules(tuple(domain or ()), tuple(pattern or ()), tuple(canary or ()))
    texts = {} if forbidden is None else _read_forbidden(forbidden)
    episodes = 0
    leaked: list[LeakedDocument] = []
    for trajectory in read_trajectories(path):
        episodes += 1
        leaked += find_leaked([trajectory], rules, forbidden=texts)
    if leaked:
        console.print(_table(leaked))
    count = len({(row.environment, row.agent, row.task_id) for row in leaked})
    console.print(f"{len(leaked)} documents leaked, in {count} of {episodes} episodes")
    if leaked:
        raise typer.Exit(1)


def _read_forbidden(path: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for record in read_jsonl(path):
        task = record.text("task")
        found[task] = found.get(task, ()) + record.texts("texts", required=True)
    return found


def _table(leaked: list[LeakedDocument]) -> Table:
    table = Table(padding=(0, 1, 0, 0))
    for heading in ("Environment", "Agent", "Task", "Turn", "Document", "Rule", "Found"):
        table.add_column(heading, overflow="fold")
    for row in leaked:
        table.add_row(*(escape(printable(str(cell))) for cell in row))
    return table
