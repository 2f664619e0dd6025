"""The commands ``train sft`` and ``train grpo``: language models that learn to search."""

import ast
import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..agents.rollouts.pool import EnvironmentPool
from ..agents.training.run import RunFolder
from ..corpora.errors import ConfigurationError, MissingExtraError, raise_unknown
from .console import console
from .train_menus import MOST_SEED, json_object

__all__ = ["grpo", "sft"]

Env = Annotated[str, typer.Option(help="The environment, for example seekgym/Phantom-50-v0.")]
EnvArgs = Annotated[
    str | None, typer.Option(help="What it is made with, as JSON: '{\"hops\": [1, 2]}'.")
]
Minutes = Annotated[float, typer.Option(help="How long to train.", min=0.01)]
Steps = Annotated[int | None, typer.Option(help="End after so many updates, if earlier.", min=1)]
Seed = Annotated[
    int,
    typer.Option(help="Decides the worlds, the weights and every draw.", min=0, max=MOST_SEED),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")]
Device = Annotated[str | None, typer.Option(help="Where it runs. A GPU if there is one.")]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Of PyTorch on a CPU. One for a model of under 10 million parameters, else PyTorch's "
        "own number.",
        min=1,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another setting, such as learning_rate=0.001; repeatable."),
]


def sft(
    env: Env = "seekgym/PhantomShort-v0",
    env_args: EnvArgs = None,
    model: Annotated[str, typer.Option(help="tiny for a new model, or a folder.")] = "tiny",
    minutes: Minutes = 30.0,
    steps: Steps = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="The folder of the run.")] = Path("runs/sft"),
    resume: Resume = False,
    device: Device = None,
    threads: Threads = None,
    settings: Settings = None,
) -> None:
    """Teach a language model to search as the tutor does, on demonstrations."""
    _quiet()
    from ..agents.training.sft import SFT, SFTSettings

    given = _given(env, env_args, model, minutes, steps, seed, settings)
    made = _made(SFTSettings, given)
    _run(made.record, out, resume, threads, lambda folder: SFT(made, folder, device=device))


def grpo(
    env: Env = "seekgym/PhantomShort-v0",
    env_args: EnvArgs = None,
    model: Annotated[str, typer.Option(help="The folder of a run or of a model.")] = "runs/sft",
    minutes: Minutes = 30.0,
    steps: Steps = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="The folder of the run.")] = Path("runs/grpo"),
    resume: Resume = False,
    device: Device = None,
    threads: Threads = None,
    teacher: Annotated[
        str | None, typer.Option(help="Distil from it too: tutor, or a model's folder.")
    ] = None,
    teacher_weight: Annotated[
        float | None, typer.Option(help="Its weight at first; 0.5 if left out.")
    ] = None,
    teacher_weight_end: Annotated[
        float | None, typer.Option(help="Its weight at the end; 0 if left out.")
    ] = None,
    teacher_turns: Annotated[
        int | None, typer.Option(help="Distil so many turns of an episode at most.", min=1)
    ] = None,
    settings: Settings = None,
) -> None:
    """Let a language model learn from its own episodes, by GRPO or one of its relatives."""
    _quiet()
    from ..agents.training.distillation import Distillation
    from ..agents.training.grpo import GRPO, GRPOSettings

    given = _given(env, env_args, model, minutes, steps, seed, settings)
    taught = {
        "weight": teacher_weight,
        "weight_end": teacher_weight_end,
        "turns": teacher_turns,
    }
    taught = {name: value for name, value in taught.items() if value is not None}
    if teacher is not None:
        given["distillation"] = Distillation(teacher, **{**_TAUGHT, **taught})
    elif taught:
        option = next(iter(taught)).replace("_", "-")
        raise ConfigurationError(f"--teacher-{option} needs --teacher: tutor, or a model's folder")
    made = _made(GRPOSettings, given)
    _run(made.record, out, resume, threads, lambda folder: GRPO(made, folder, device=device))


def _run(
    config: Mapping[str, Any],
    out: Path,
    resume: bool,
    threads: int | None,
    make: Callable[[RunFolder], Any],
) -> None:
    """Train, show how it goes, and draw the curves."""
    import torch

    from ..agents.training.curves import draw_curves
    from ..agents.training.display import TrainingDisplay

    # What cannot be played must not leave a folder.
    EnvironmentPool(config["environment"], config["arguments"], protocol="search-r1")
    folder = RunFolder.begin(out, config, resume=resume)
    trainer = make(folder)
    if threads is not None or trainer.model.num_parameters() < _SMALL:
        torch.set_num_threads(threads or 1)
    total = config["steps"] if config["steps"] is not None else 60 * config["minutes"]
    unit = "step" if config["steps"] is not None else "seconds"
    with TrainingDisplay(console, title=str(config["method"]), total=total) as display:

        def show(record: dict[str, Any]) -> None:
            display.show(min(total, record[unit]), _figures(record))

        found = trainer.train(show)
    draw_curves(folder.records(), folder.path)
    parts = [f"{100 * found.exact_match:.1f}% of {found.episodes} questions right in a world apart"]
    parts += [
        f"{hops} hops: {100 * right:.1f}%, {searches:.2f} searches"
        for hops, (_, right, searches) in found.by_hops.items()
    ]
    console.print("; ".join(parts), soft_wrap=True, markup=False, highlight=False)
    console.print(
        f"Model, log and curves: {folder.path}. To play: seekgym bench --agent local --model "
        f"{folder.path}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )


_SMALL = 10_000_000  # parameters; measured with 0.8 million
_TAUGHT: Mapping[str, Any] = {"weight": 0.5, "weight_end": 0.0}
_OPTIONS = {  # settings that have an option of their own
    "environment": "--env",
    "arguments": "--env-args",
    "model": "--model",
    "minutes": "--minutes",
    "steps": "--steps",
    "seed": "--seed",
    "distillation": "--teacher",
}
_SHOWN = (
    "step",
    "loss",
    "accuracy",
    "reward",
    "exact_match",
    "held_out_exact_match",
    "searches",
    "valid_calls",
    "entropy",
    "right_log_prob",
    "gradient_norm",
    "distillation_loss",
    "distillation_weight",
)


def _figures(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in _SHOWN if record.get(name) is not None}


def _given(
    env: str,
    env_args: str | None,
    model: str,
    minutes: float,
    steps: int | None,
    seed: int,
    settings: list[str] | None,
) -> dict[str, Any]:
    given: dict[str, Any] = {
        "environment": env,
        "arguments": json_object("--env-args", env_args or "{}"),
        "model": model,
        "minutes": minutes,
        "steps": steps,
        "seed": seed,
    }
    for text in settings or ():
        name, is_found, value = text.partition("=")
        if not is_found:
            raise ConfigurationError(f"--set takes name=value, got {text!r}")
        if name.strip() in _OPTIONS:
            raise ConfigurationError(f"--set {text}: say it by {_OPTIONS[name.strip()]}")
        given[name.strip()] = _value(value.strip())
    return given


def _value(text: str) -> Any:
    """Return a number, True, False or None, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _made(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """Return the settings; an unknown name or a wrong type is a ConfigurationError."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name, value in given.items():
        if name not in fields:
            raise_unknown("setting", name, fields)
        default = fields[name].default
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigurationError(f"{name} must be a finite number, got {value!r}")
        if isinstance(default, float) and type(value) is int:
            continue
        if isinstance(default, (bool, int, float, str)) and type(value) is not type(default):
            kind_name = type(default).__name__
            raise ConfigurationError(f"{name} must be of type {kind_name}, got {value!r}")
    return kind(**given)


def _quiet() -> None:
    """Say which extra is missing, and keep the progress bars of loading models away."""
    try:
        from transformers.utils import logging
    except ImportError:
        raise MissingExtraError("transformers", "train") from None
    logging.disable_progress_bar()
