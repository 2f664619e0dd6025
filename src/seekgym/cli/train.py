"""The commands ``train ...``: agents that learn. A new trainer is a function and a row here."""

import typer

from .train_models import grpo, sft

__all__ = ["train"]

train = typer.Typer(help="Train agents.", no_args_is_help=True)
train.command()(sft)
train.command()(grpo)
