"""Shell commands over raw text: a strict grammar, an allow-list and a fence."""

from .base import Limits, PipelineRunner, ShellResult
from .parse import Pipeline, Stage, parse
from .sandbox import PlainRunner, active_fence

__all__ = [
    "Limits",
    "Pipeline",
    "PipelineRunner",
    "PlainRunner",
    "ShellResult",
    "Stage",
    "active_fence",
    "parse",
]
