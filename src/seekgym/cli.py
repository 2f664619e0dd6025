"""The ``seekgym`` command: list, play, bench, show."""

import os
import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from .agents import AGENTS
from .agents.rollouts import Trajectory, read_trajectories
from .corpora.errors import ConfigurationError, SeekgymError, raise_unknown
from .envs.registration import ENVIRONMENTS
from .envs.transcript import describe_action
from .leaderboard import EnvironmentChoice, Evaluation, evaluate, write_report
from .leaderboard.evaluate import METRICS
from .leaderboard.report import HEADINGS
from .version import __version__

__all__ = ["app", "bench", "list_environments", "main", "play", "show"]

app = typer.Typer(
    help="Search environments for agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
_ENV_IDS = [environment.id for environment in ENVIRONMENTS]


def _show_version(is_asked: bool) -> None:
    if is_asked:
        console.print(f"seekgym {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version),
    ] = False,
) -> None:
    """Search environments for agents."""


@app.command("list")
def list_environments() -> None:
    """List every environment and every agent."""
    table = Table("Environment", "What it is", box=None, pad_edge=False)
    for environment in ENVIRONMENTS:
        table.add_row(environment.id, environment.description)
    console.print(table)
    console.print()
    agents = Table("Agent", "What it does", box=None, pad_edge=False)
    for name, agent in AGENTS.items():
        agents.add_row(name, (agent.__doc__ or "").partition("\n")[0])
    console.print(agents)


@app.command()
def play(
    env: Annotated[str, typer.Argument(help="An environment, for example seekgym/QA-v0.")],
    task: Annotated[str | None, typer.Option(help="The id of the task to play.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seeds the draw of the task.", min=0)] = None,
) -> None:
    """Play an episode yourself.

    Type a tool and its argument: search who wrote Dracula. Ctrl-D leaves the game.
    """
    made = _make(env)
    options = None if task is None else {"task": task}
    observation, info = made.reset(seed=seed, options=options)
    console.rule(f"{env} · task {info['task_id']}")
    console.print(observation, markup=False, highlight=False)
    console.print(f"[dim]Tools: {escape(', '.join(_usages(made)))}[/dim]")
    is_over, total = False, 0.0
    while not is_over:
        try:
            line = console.input(f"[bold]turn {info['turn'] + 1}[/bold]> ")
        except EOFError:
            console.print("\nLeft the game.")
            return
        if not line.strip():
            continue
        observation, reward, terminated, truncated, info = made.step(_typed_call(made, line))
        console.print(observation, markup=False, highlight=False)
        total += float(reward)
        is_over = terminated or truncated
    console.print(f"Return {total:.2f}. Gold answer: {' | '.join(info['gold_answers'])}.")


@app.command()
def bench(
    agent: Annotated[
        list[str] | None,
        typer.Option(help=f"An agent, repeatable: {', '.join(AGENTS)}, or module:Class."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(help="An environment, repeatable. All if left out."),
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
    progress = Progress(*columns, console=Console(stderr=True))
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


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A file of trajectories, one a line.")],
    number: Annotated[
        int | None, typer.Option(help="Show only this one, counted from 1.", min=1)
    ] = None,
) -> None:
    """Show recorded episodes so that they can be read."""
    trajectories = list(read_trajectories(file))
    if not trajectories:
        raise ConfigurationError(f"{file}: no trajectories; it needs one JSON object a line")
    if number is not None and number > len(trajectories):
        raise ConfigurationError(f"--number {number}: {file} has {len(trajectories)} trajectories")
    chosen = trajectories if number is None else trajectories[number - 1 : number]
    for trajectory in chosen:
        _print_trajectory(trajectory)


def main() -> None:
    """Run the command; a mistake gives one line and exit code 2, never a traceback."""
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        code = _complain(error.format_message().replace("\n", " ") + " (see --help)")
    except SeekgymError as error:
        code = _complain(str(error))
    except OSError as error:
        code = _complain(f"{error.filename or 'file'}: {error.strerror or error}")
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    Console(stderr=True).print(f"seekgym: {message}", markup=False, highlight=False, soft_wrap=True)
    return 2


def _make(env_id: str) -> gym.Env[Any, Any]:
    if env_id not in _ENV_IDS:
        raise_unknown("environment", env_id, _ENV_IDS)
    return gym.make(env_id)


def _choices(
    env: list[str] | None, corpus: str | None, tasks: str | None
) -> list[EnvironmentChoice]:
    if corpus is None and tasks is None:
        return [EnvironmentChoice(env_id) for env_id in env or _ENV_IDS]
    if corpus is None:
        raise ConfigurationError("--tasks needs --corpus: the documents that the tasks are about")
    if env not in (None, ["seekgym/QA-v0"]):
        raise ConfigurationError("--corpus is for seekgym/QA-v0; leave out --env")
    arguments = {"corpus": corpus} if tasks is None else {"corpus": corpus, "tasks": tasks}
    return [EnvironmentChoice("seekgym/QA-v0", arguments)]


def _usages(env: gym.Env[Any, Any]) -> list[str]:
    inner: Any = env.unwrapped
    return [tool.signature.usage for tool in inner.tools.values()]


def _typed_call(env: gym.Env[Any, Any], line: str) -> dict[str, Any]:
    """Return the call that a person typed: the tool, then its first argument."""
    name, _, argument = line.strip().partition(" ")
    inner: Any = env.unwrapped
    if name not in inner.tools:
        return {"name": name, "arguments": {}}
    parameter = inner.tools[name].signature.parameters[0].name
    return {"name": name, "arguments": {parameter: argument.strip()}}


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


def _print_trajectory(trajectory: Trajectory) -> None:
    console.rule(
        escape(f"{trajectory.environment} · {trajectory.agent} · task {trajectory.task_id}")
    )
    console.print(trajectory.question, markup=False, highlight=False)
    for number, turn in enumerate(trajectory.turns, start=1):
        action = turn.action if isinstance(turn.action, str) else describe_action(turn.action)
        console.print(f"[bold blue]turn {number}[/bold blue] {escape(action)}", highlight=False)
        console.print(turn.observation, markup=False, highlight=False)
    outcome = trajectory.outcome
    gold = " | ".join(outcome.get("gold_answers", ()))
    console.print(
        f"Return {trajectory.total_reward:.2f}. Answer: {outcome.get('answer')}. Gold: {gold}.",
        markup=False,
        highlight=False,
    )
