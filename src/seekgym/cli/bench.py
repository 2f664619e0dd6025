"""The command that plays agents in environments and writes the results."""

import os
import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ..agents import AGENTS
from ..corpora.errors import ConfigurationError
from ..envs.registration import ENVIRONMENTS
from ..leaderboard import EnvironmentChoice, Evaluation, evaluate, write_report
from ..leaderboard.evaluate import METRICS
from ..leaderboard.report import HEADINGS
from .console import console, errors

__all__ = ["bench"]


def bench(
    agent: Annotated[
        list[str] | None,
        typer.Option(help=f"An agent, repeatable: {', '.join(AGENTS)}, or module:Class."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(help="An environment, repeatable. All but the large ones if left out."),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(help="Episodes for each agent and environment. Each task once if left out."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the order of tasks and the intervals.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes that play. Changes no result.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the results. runs/<time> if left out.")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="Your own corpus: a JSONL file or a folder, for seekgym/QA-v0."),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="The tasks of your corpus: a JSONL file.")
    ] = None,
) -> None:
    """Play agents in environments; print a table, write results.json and report.html."""
    choices = _choices(env, corpus, tasks)
    columns = (
        TextColumn("Playing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("episodes, left"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=errors)
    bar = progress.add_task("play", total=None)

    def show_progress(done: int, total: int) -> None:
        progress.start()  # not before all arguments were found to be right
        progress.update(bar, completed=done, total=total)

    sys.path.append(os.getcwd())  # where a module:Class of the user's lies
    try:
        evaluation = evaluate(
            agent or list(AGENTS),
            choices,
            episodes=episodes,
            seed=seed,
            jobs=jobs,
            on_progress=show_progress,
        )
    finally:
        if progress.live.is_started:
            progress.stop()
    folder = out or Path("runs") / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    arguments = shlex.join(sys.argv[1:]) if sys.argv[1:2] == ["bench"] else "bench"
    write_report(evaluation, folder, command=f"seekgym {arguments}")
    _print_tables(evaluation)
    console.print(f"Wrote {folder / 'results.json'} and {folder / 'report.html'}", soft_wrap=True)


def _choices(
    env: list[str] | None, corpus: str | None, tasks: str | None
) -> list[EnvironmentChoice]:
    if corpus is None and tasks is None:
        return [EnvironmentChoice(env_id) for env_id in env or _small_ids()]
    if corpus is None:
        raise ConfigurationError("--tasks needs --corpus: the documents that the tasks are about")
    if env not in (None, ["seekgym/QA-v0"]):
        raise ConfigurationError("--corpus is for seekgym/QA-v0; leave out --env")
    arguments = {"corpus": corpus} if tasks is None else {"corpus": corpus, "tasks": tasks}
    return [EnvironmentChoice("seekgym/QA-v0", arguments)]


def _small_ids() -> list[str]:
    return [environment.id for environment in ENVIRONMENTS if not environment.is_large]


def _print_tables(evaluation: Evaluation) -> None:
    for environment in dict.fromkeys(row.environment for row in evaluation.rows):
        table = Table(title=environment, title_justify="left", padding=(0, 1, 0, 0))
        table.add_column("Agent", no_wrap=True)
        for metric in METRICS:
            table.add_column(HEADINGS[metric], justify="right")
        for row in evaluation.rows:
            if row.environment != environment:
                continue
            name = f"{row.agent}*" if row.sees_gold else row.agent
            cells = [row.metrics[metric] for metric in METRICS]
            table.add_row(name, *("–" if cell is None else f"{cell.mean:.2f}" for cell in cells))
        console.print(table)
    console.print("* sees the gold answers or the evidence: a ceiling, not a competitor")
    failed = sum(row.failed for row in evaluation.rows)
    if failed:
        console.print(f"{failed} episodes were lost to a failing backend and do not count")
