"""The command that plays agents in environments and writes the results."""

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
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
from ..envs.protocols import PROTOCOLS
from ..leaderboard import EnvironmentChoice, Episode, Evaluation, evaluate, write_report
from ..leaderboard.evaluate import METRICS
from ..leaderboard.report import HEADINGS
from ..registration import ENVIRONMENTS
from .console import console, errors
from .policies import POLICIES, make_policies
from .teams import TEXT_TEAMS, check_teams, play_teams

__all__ = ["bench"]


def bench(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            help=f"An agent, repeatable: {', '.join([*AGENTS, *POLICIES])}, or module:Class."
        ),
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
    model: Annotated[
        str | None,
        typer.Option(help="For local, chat and sb3: a folder, a GGUF file, or a model's name."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="For chat: where a server that speaks OpenAI's API is.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help=f"For local and chat: {', '.join(PROTOCOLS)}; for chat also tools."),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="For local and chat: of sampling; 0 is greedy.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="For local and chat: the longest reply, in tokens.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="For local and chat: how many episodes play at once.")
    ] = None,
    team: Annotated[
        list[str] | None,
        typer.Option(
            help="A team, repeatable, played beside the agents: "
            f"{', '.join(TEXT_TEAMS)}. {TEXT_TEAMS[1]} if no environment is named."
        ),
    ] = None,
) -> None:
    """Play agents in environments; print a table, write results.json and report.html."""
    choices = _choices(env, corpus, tasks)
    names = agent or list(AGENTS)
    policies = make_policies(
        names,
        model=model,
        base_url=base_url,
        protocol=protocol,
        temperature=temperature,
        max_tokens=max_tokens,
        concurrency=concurrency,
    )
    is_all = env is None and corpus is None
    teams = check_teams(team or ([TEXT_TEAMS[1]] if is_all else []))
    folder = _folder(out)
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
        if done == 0:  # all arguments were found to be right
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "trajectories.jsonl").write_text("", encoding="utf-8")
            progress.start()
        progress.update(bar, completed=done, total=total)

    sys.path.append(os.getcwd())  # where a module:Class of the user's lies
    try:
        evaluation = evaluate(
            [name for name in names if name not in POLICIES],
            choices,
            policies=policies,
            episodes=episodes,
            seed=seed,
            jobs=jobs,
            on_progress=show_progress,
            on_played=lambda played: _keep(played, folder),
        )
    finally:
        if progress.live.is_started:
            progress.stop()
    arguments = shlex.join(sys.argv[1:]) if sys.argv[1:2] == ["bench"] else "bench"
    write_report(evaluation, folder, command=f"seekgym {arguments}")
    _print_tables(evaluation)
    for team_id in teams:
        play_teams(team_id, agent or list(AGENTS), folder, episodes=episodes, seed=seed)
    written = f"Wrote {folder / 'results.json'} and {folder / 'report.html'}"
    console.print(written, soft_wrap=True, markup=False, highlight=False)


def _choices(
    env: list[str] | None, corpus: str | None, tasks: str | None
) -> list[EnvironmentChoice]:
    if corpus is None and tasks is None:
        return [EnvironmentChoice(env_id) for env_id in env or _small_ids()]
    if corpus is None:
        raise ConfigurationError("--tasks needs --corpus: the documents that the tasks are about")
    if set(env or ()) - {"seekgym/QA-v0"}:
        raise ConfigurationError("--corpus is for seekgym/QA-v0; leave out --env")
    arguments = {"corpus": corpus} if tasks is None else {"corpus": corpus, "tasks": tasks}
    return [EnvironmentChoice("seekgym/QA-v0", arguments)]


def _folder(out: Path | None) -> Path:
    """Return the folder for the results."""
    if out is not None and not out.name:
        raise ConfigurationError(f"--out must name a folder, got {str(out)!r}")
    return out or Path("runs") / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"


def _keep(episodes: Sequence[Episode], folder: Path) -> None:
    """Write episodes as they are played: an interrupted run keeps them."""
    with open(folder / "trajectories.jsonl", "a", encoding="utf-8") as file:
        file.writelines(episode.trajectory.to_json() + "\n" for episode in episodes)


def _small_ids() -> list[str]:
    return [row.id for row in ENVIRONMENTS if not row.is_large]


def _print_tables(evaluation: Evaluation) -> None:
    for environment in dict.fromkeys(row.environment for row in evaluation.rows):
        table = Table(title=escape(environment), title_justify="left", padding=(0, 1, 0, 0))
        table.add_column("Agent", no_wrap=True)
        for metric in METRICS:
            table.add_column(HEADINGS[metric], justify="right")
        for row in evaluation.rows:
            if row.environment != environment:
                continue
            name = escape(f"{row.agent}*" if row.sees_gold else row.agent)
            cells = [row.metrics[metric] for metric in METRICS]
            table.add_row(name, *("–" if cell is None else f"{cell.mean:.2f}" for cell in cells))
        console.print(table)
    if any(row.sees_gold for row in evaluation.rows):
        console.print("* sees the gold answers or the evidence: a ceiling, not a competitor")
    failed = sum(row.failed for row in evaluation.rows)
    if failed:
        console.print(f"{failed} episodes were lost to a failing backend and do not count")
