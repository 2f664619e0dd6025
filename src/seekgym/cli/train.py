"""The commands ``train ...``: agents that learn. A new trainer is a function and a row here."""

import typer

from .train_menus import sb3
from .train_models import grpo, sft

__all__ = ["train"]

train = typer.Typer(
    help="Train agents; each run is a folder with config, log, curves and checkpoints.",
    no_args_is_help=True,
)
train.command()(sb3)
train.command()(sft)
train.command()(grpo)
