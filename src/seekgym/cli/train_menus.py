"""The command ``train sb3``: agents that learn to choose from menus."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..agents import OracleAgent, RandomAgent
from ..agents.rollouts import play
from ..agents.training.display import TrainingDisplay
from ..corpora.documents import with_tuples
from ..corpora.errors import ConfigurationError
from ..envs.game import Game
from .console import console

__all__ = ["MOST_SEED", "json_object", "sb3"]

MOST_SEED = 2**32 - 1  # of torch, numpy and the learners alike
_EPISODES = 100


def sb3(
    env: Annotated[
        str, typer.Option(help="An environment: one of menus, any of text, or your own in numbers.")
    ] = "seekgym/PhantomMenu-v0",
    minutes: Annotated[float, typer.Option(help="How long to train.")] = 5.0,
    algorithm: Annotated[str, typer.Option(help="maskable-ppo, ppo, dqn or a2c.")] = "maskable-ppo",
    seed: Annotated[
        int, typer.Option(help="Decides weights, tasks and draws.", min=0, max=MOST_SEED)
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the run. runs/sb3-<time> if left out.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out from its checkpoint.")
    ] = False,
    env_args: Annotated[
        str, typer.Option(help="What the environment is made with, as a JSON object.")
    ] = "{}",
    test_args: Annotated[
        str, typer.Option(help="What it is made with for evaluation, beside --env-args.")
    ] = '{"split": "test"}',
) -> None:
    """Learn to choose from menus, with stable-baselines3 or sb3-contrib."""
    if resume and out is None:
        raise ConfigurationError("--resume needs --out: the folder of the run")
    from ..agents.training import sb3 as learner  # its libraries: only when they are asked for

    learner.use_one_thread()

    settings = learner.SB3Settings(
        env,
        algorithm,
        minutes,
        seed,
        json_object("--env-args", env_args),
        json_object("--test-args", test_args),
    )
    folder = out or Path("runs") / f"sb3-{datetime.now():%Y-%m-%d_%H-%M-%S}"
    with TrainingDisplay(console, title=algorithm, total=60 * minutes) as display:
        policy = learner.train(settings, folder, resume=resume, on_progress=display.show)
    _print_table(learner, settings, policy)
    told = f"Wrote {folder}: config.json, log.jsonl, curves.html, checkpoints"
    console.print(told, soft_wrap=True, markup=False, highlight=False)


def json_object(option: str, text: str) -> dict[str, Any]:
    """Return the JSON object that an option holds; lists become tuples, as arguments are."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} must be a JSON object, got {text!r} ({error})") from (
            None
        )
    if not isinstance(values, dict):
        raise ConfigurationError(f"{option} must be a JSON object, got {text!r}")
    return dict(with_tuples(values))


def _print_table(learner: Any, settings: Any, policy: Any) -> None:
    """Print what chance, the policy and the oracle earn in evaluation."""
    arguments: Mapping[str, Any] = {**settings.env_args, **settings.test_args}
    env = learner.make_numeric(settings.env, arguments)
    returns = {"learned": learner.play_returns(policy, env, _EPISODES, seed=1)}
    if isinstance(env.unwrapped, Game):
        for agent_class in (RandomAgent, OracleAgent):
            agent = agent_class(env)
            played = [play(env, agent, seed=number) for number in range(_EPISODES)]
            name = f"{agent.name}*" if agent.sees_gold else agent.name
            returns[name] = [trajectory.total_reward for trajectory in played]
    title = f"{settings.env} with {json.dumps(arguments)}: mean return of {_EPISODES} episodes"
    console.print(title, soft_wrap=True, markup=False, highlight=False)
    table = Table(padding=(0, 1, 0, 0))
    table.add_column("Who")
    table.add_column("Return", justify="right")
    for name in ("random", "learned", "oracle*"):
        if name in returns:
            table.add_row(name, f"{sum(returns[name]) / _EPISODES:.3f}")
    console.print(table)
    if "oracle*" in returns:
        console.print(
            "* sees the gold answers or the evidence: about the best that the choices allow"
        )
