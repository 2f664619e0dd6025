"""Commands about single episodes: list, play, show."""

from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import typer
from gymnasium.spaces import Discrete
from rich.markup import escape
from rich.table import Table

from ..agents import AGENTS
from ..agents.rollouts import Trajectory, read_trajectories
from ..corpora.errors import ConfigurationError, raise_unknown
from ..envs.team.trace import is_trace
from ..envs.transcript import describe_action
from ..registration import ENVIRONMENTS
from .console import console, printable
from .teams import show_traces

__all__ = ["list_environments", "play", "show"]

_DIGITS = 9  # of a choice; a longer number is none


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


def play(
    env: Annotated[str, typer.Argument(help="An environment, for example seekgym/QA-v0.")],
    task: Annotated[str | None, typer.Option(help="The id of the task to play.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seeds the draw of the task.", min=0)] = None,
) -> None:
    """Play an episode yourself.

    Type a tool and its argument: search who wrote Dracula; or the name or number of a choice,
    where there are choices. Ctrl-D leaves the game.
    """
    made = _make(env)
    options = None if task is None else {"task": task}
    observation, info = made.reset(seed=seed, options=options)
    console.rule(f"{env} · task {info['task_id']}")
    console.print(printable(info.get("text", observation)), markup=False, highlight=False)
    if usages := _usages(made):
        console.print(f"[dim]Tools: {escape(', '.join(usages))}[/dim]")
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
        console.print(printable(info.get("text", observation)), markup=False, highlight=False)
        total += float(reward)
        is_over = terminated or truncated
    console.print(f"Return {total:.2f}. Gold answer: {' | '.join(info['gold_answers'])}.")


def show(
    file: Annotated[Path, typer.Argument(help="A file of trajectories, one a line.")],
    number: Annotated[
        int | None, typer.Option(help="Show only this one, counted from 1.", min=1)
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a team's timeline to this page instead.")
    ] = None,
) -> None:
    """Show recorded episodes so that they can be read: turns, or the timeline of a team."""
    if is_trace(file):
        show_traces(file, number, html)
        return
    if html is not None:
        raise ConfigurationError(f"--html is for the traces of teams, and {file} holds none")
    trajectories = list(read_trajectories(file))
    if not trajectories:
        raise ConfigurationError(f"{file}: no trajectories; it needs one JSON object a line")
    if number is not None and number > len(trajectories):
        raise ConfigurationError(f"--number {number}: {file} has {len(trajectories)} trajectories")
    chosen = trajectories if number is None else trajectories[number - 1 : number]
    for trajectory in chosen:
        _print_trajectory(trajectory)


def _environment_ids() -> list[str]:
    return [environment.id for environment in ENVIRONMENTS]


def _make(env_id: str) -> gym.Env[Any, Any]:
    if env_id not in _environment_ids():
        raise_unknown("environment", env_id, _environment_ids())
    return gym.make(env_id)


def _usages(env: gym.Env[Any, Any]) -> list[str]:
    inner: Any = env.unwrapped
    if isinstance(env.action_space, Discrete):
        return []
    return [tool.signature.usage for tool in inner.tools.values()]


def _typed_call(env: gym.Env[Any, Any], line: str) -> Any:
    """Return what a person typed: a tool, then its first argument; or the name of a choice."""
    name, _, argument = line.strip().partition(" ")
    inner: Any = env.unwrapped
    if isinstance(env.action_space, Discrete):
        if line.strip().isdecimal() and len(line.strip()) < _DIGITS:
            return int(line)
        labels = list(env.get_wrapper_attr("labels")())
        return labels.index(line.strip()) if line.strip() in labels else -1
    if name not in inner.tools:
        return {"name": name, "arguments": {}}
    parameters = inner.tools[name].signature.parameters
    arguments = {parameters[0].name: argument.strip()} if parameters else {}
    return {"name": name, "arguments": arguments}


def _print_trajectory(trajectory: Trajectory) -> None:
    console.rule(
        escape(
            printable(f"{trajectory.environment} · {trajectory.agent} · task {trajectory.task_id}")
        )
    )
    console.print(printable(trajectory.question), markup=False, highlight=False)
    for number, turn in enumerate(trajectory.turns, start=1):
        action = turn.action if isinstance(turn.action, str) else describe_action(turn.action)
        console.print(
            f"[bold blue]turn {number}[/bold blue] {escape(printable(action))}", highlight=False
        )
        console.print(printable(turn.observation), markup=False, highlight=False)
    outcome = trajectory.outcome
    gold = " | ".join(outcome.get("gold_answers") or ())
    end = f"Return {trajectory.total_reward:.2f}. Answer: {outcome.get('answer')}. Gold: {gold}."
    console.print(
        printable(end),
        markup=False,
        highlight=False,
    )
