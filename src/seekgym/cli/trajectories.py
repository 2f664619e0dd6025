"""The command ``trajectories``: episodes of the oracle, to warm a policy up with."""

from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import gymnasium as gym
import typer
from rich.progress import track

from ..agents import OracleAgent
from ..agents.rollouts import Trajectory, play, replay, ungrounded
from ..corpora.errors import ConfigurationError, raise_unknown
from ..envs.base import SearchEnv
from ..registration import ENVIRONMENTS
from .console import console, errors

__all__ = ["trajectories"]


def trajectories(
    env: Annotated[str, typer.Argument(help="An environment, for example seekgym/Phantom-v0.")],
    out: Annotated[Path, typer.Option(help="The file to write, one episode a line.")] = Path(
        "trajectories.jsonl"
    ),
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Let the oracle play the proofs of the tasks.")
    ] = False,
    corpus: Annotated[
        str | None, typer.Option(help="Another corpus, for example phantom:people=50.")
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(help="How many tasks, from the first. All if left out.", min=1)
    ] = None,
) -> None:
    """Write episodes in which each action uses only what was seen before.

    Each is verified: the answer is right, a second run gives the same bytes, and no name or
    number is used before it was seen. What fails is left out and counted.
    """
    if not oracle:
        raise ConfigurationError("say who plays: --oracle plays the proofs of the tasks")
    made = _make(env, corpus)
    inner = cast(SearchEnv, made.unwrapped)
    proved = [task.id for task in inner.tasks if task.proof][:tasks]
    if not proved:
        raise ConfigurationError(
            f"the tasks of {env} come without proofs; try seekgym/Phantom-v0, or for Grep-v0 "
            "--corpus phantom:people=50"
        )
    agent, kept, dropped = OracleAgent(made), 0, 0
    out.parent.mkdir(parents=True, exist_ok=True)
    with _new_file(out) as file:
        for task_id in track(proved, "Playing", console=errors):
            trajectory = play(made, agent, seed=0, options={"task": task_id})
            if _is_verified(trajectory, made):
                file.write(trajectory.to_json() + "\n")
                kept += 1
            else:
                dropped += 1
    console.print(
        f"Wrote {kept} trajectories to {out}; {dropped} were left out",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )


def _new_file(path: Path) -> TextIO:
    try:
        return open(path, "x", encoding="utf-8")
    except FileExistsError:
        raise ConfigurationError(f"{path} exists; remove it, or pass another --out") from None


def _make(name: str, corpus: str | None) -> gym.Env[Any, Any]:
    env_id = name if "/" in name else f"seekgym/{name}"
    known = [environment.id for environment in ENVIRONMENTS]
    if env_id not in known:
        raise_unknown("environment", env_id, known)
    return gym.make(env_id) if corpus is None else gym.make(env_id, corpus=corpus)


def _is_verified(trajectory: Trajectory, env: gym.Env[Any, Any]) -> bool:
    return (
        trajectory.outcome["exact_match"] == 1
        and not ungrounded(trajectory)
        and not replay(trajectory, env)
    )
