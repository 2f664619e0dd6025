"""What a command costs at most, what it gives back, and who runs it."""

from dataclasses import dataclass
from typing import Protocol

from .parse import Pipeline

__all__ = ["Limits", "PipelineRunner", "ShellResult"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bound what one pipeline may use: each process its CPU and memory, all of them the rest."""

    wall_s: float = 20.0
    cpu_s: int = 20
    memory_bytes: int = 1 << 30
    max_output_bytes: int = 1 << 20
    max_error_bytes: int = 1 << 13


@dataclass(frozen=True, slots=True)
class ShellResult:
    """Hold what a pipeline wrote: bytes, as they came, up to the limit."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    timed_out: bool = False
    truncated: bool = False


class PipelineRunner(Protocol):
    """Run pipelines over one folder. Safe to share between threads and environments."""

    def run(self, pipeline: Pipeline) -> ShellResult:
        """Return what the pipeline wrote.

        Raises:
            CommandError: a program, an option or a path is not allowed.
            BackendError: the pipeline could not be run at all.
        """
        ...
