"""Shell commands over raw text: a strict grammar, an allow-list and a fence."""

from .base import Limits, PipelineRunner, ShellResult
from .parse import Pipeline, Stage, parse

__all__ = ["Limits", "Pipeline", "PipelineRunner", "ShellResult", "Stage", "parse"]
