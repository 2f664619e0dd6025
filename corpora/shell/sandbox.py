"""Run pipelines behind a fence: no shell, no network, nothing outside the corpus folder.

A worker is started once and then asked for pipelines over a pipe. Where bubblewrap works, it
lives in namespaces of its own with a read-only view of the programs and of the corpus, and nothing
else; elsewhere, limits, the allow-list and the checks of paths are the fence. A worker that dies
is replaced, and no process outlives it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from ..errors import BackendError, ConfigurationError, raise_unknown
from .base import Limits, ShellResult
from .parse import Pipeline
from .programs import PROGRAMS, Command, check_pipeline, find_program
from .worker import REPLY, REQUEST

__all__ = ["Fence", "PlainRunner", "active_fence", "run"]

Fence = Literal["bubblewrap", "limits"]

_WORKER = Path(__file__).with_name("worker.py")
_INSIDE = "/corpus"
_GRACE_S = 5.0  # what a worker may take longer than its pipeline
# All that a program finds in its environment.
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "PATH": "/nonexistent"}


@cache
def active_fence() -> Fence:
    """Return which fence works on this machine: ``"bubblewrap"``, or ``"limits"`` alone."""
    found = shutil.which("bwrap")
    if found is None:
        return "limits"
    command = [*_fence_words(found, Path("/usr")), "/usr/bin/env"]
    done = subprocess.run(command, capture_output=True, check=False, env={})
    return "bubblewrap" if done.returncode == 0 else "limits"


def run(
    pipeline: Pipeline, root: str | os.PathLike[str], *, limits: Limits | None = None
) -> ShellResult:
    """Run one pipeline over a folder in a worker of its own; see ``PlainRunner``."""
    runner = PlainRunner(root, limits=limits)
    try:
        return runner.run(pipeline)
    finally:
        runner.close()


class PlainRunner:
    """Runs pipelines over one folder, each program in full over whole files.

    Safe to use from several threads: a worker answers one of them at a time, and there are as
    many workers as were ever needed at once, up to the number of processors.

    Args:
        root: The folder; commands name files in it by relative paths.
        limits: What a pipeline may use.
        fence: ``"bubblewrap"`` or ``"limits"``; the best that works here if left out.

    Raises:
        ConfigurationError: There is no such folder, or the fence does not work here.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        fence: Fence | None = None,
    ) -> None:
        if not Path(root).is_dir():
            raise ConfigurationError(f"{root}: not a folder; pass the folder of the corpus")
        if fence is not None and fence not in ("bubblewrap", "limits"):
            raise_unknown("fence", fence, ("bubblewrap", "limits"))
        if fence == "bubblewrap" and active_fence() != "bubblewrap":
            raise ConfigurationError("fence='bubblewrap' does not work here; see seekgym doctor")
        self.root = Path(root).resolve()
        self.limits = limits or Limits()
        self.fence: Fence = fence or active_fence()
        self._prepare()

    def _prepare(self) -> None:
        self._workers = _Workers(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return what makes an equal runner; workers are started again where they are needed."""
        return {"root": self.root, "limits": self.limits, "fence": self.fence}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state; no worker is started yet."""
        self.__dict__.update(state)
        self._prepare()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same runner: copies of environments share it."""
        return self

    def run(self, pipeline: Pipeline) -> ShellResult:
        """Return what a pipeline wrote.

        Raises:
            CommandError: A program, an option, a script or a path is not allowed.
            BackendError: The pipeline could not be run at all.
        """
        return self.run_commands(check_pipeline(pipeline, self.root))

    def run_commands(self, commands: Sequence[Command], fed: bytes | None = None) -> ShellResult:
        """Run commands that were checked.

        Args:
            commands: What ``check_pipeline`` gave.
            fed: What the first program reads on its standard input; nothing if left out.

        Raises:
            BackendError: They could not be run.
        """
        request = {
            "stages": [[command.path, command.arguments] for command in commands],
            "limits": asdict(self.limits) | {"is_fed": fed is not None},
        }
        for attempt in (1, 2):  # a worker may have died since it was last asked
            with self._workers.borrowed() as worker:
                try:
                    return worker.ask(request, fed or b"")
                except (OSError, ValueError, EOFError) as error:
                    worker.close()
                    if attempt == 2:
                        raise BackendError(f"the fence failed: {error!r}") from error
        raise AssertionError

    def close(self) -> None:
        """End every worker; a later run starts another."""
        self._workers.close()


class _Workers:
    """The workers of one runner, each lent to one thread at a time."""

    def __init__(self, runner: PlainRunner) -> None:
        self._command = _worker_command(runner.root, runner.fence, runner.limits)
        self._root = runner.root
        self._wait_s = runner.limits.wall_s + _GRACE_S
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(os.cpu_count() or 1)
        self._idle: list[_Worker] = []
        _ALL.add(self)

    @contextmanager
    def borrowed(self) -> "Iterator[_Worker]":
        """Lend a worker: one that is idle and alive, or a new one."""
        with self._slots:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None or not worker.is_alive:
                worker = _Worker(self._command, self._root, self._wait_s)
            try:
                yield worker
            except BaseException:
                worker.close()
                raise
            with self._lock:
                self._idle.append(worker)

    def close(self) -> None:
        """End the idle workers."""
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.close()

    def forget(self) -> None:
        """Let go of workers that belong to the process this one was forked from."""
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(os.cpu_count() or 1)
        for worker in self._idle:
            worker.forget()
        self._idle = []


_ALL: weakref.WeakSet[_Workers] = weakref.WeakSet()


def _forget_all() -> None:
    for workers in list(_ALL):
        workers.forget()


os.register_at_fork(after_in_child=_forget_all)


class _Worker:
    """One process behind the fence that answers requests."""

    def __init__(self, command: Sequence[str], root: Path, wait_s: float) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env=_ENVIRONMENT,
            start_new_session=True,
        )
        self._wait_s = wait_s
        self._finalizer = weakref.finalize(self, _end, self._process)
        try:
            self._reply()
        except (OSError, ValueError, EOFError) as error:
            self.close()
            raise BackendError(f"the fence could not be put up: {error!r}") from error

    @property
    def is_alive(self) -> bool:
        """Tell whether the process still runs."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], fed: bytes) -> ShellResult:
        """Return the result of one request."""
        text = json.dumps(request).encode()
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(REQUEST.pack(len(text), len(fed)) + text)
        pipe.write(fed)
        pipe.flush()
        result, out, complaints = self._reply()
        if "failure" in result:
            raise BackendError(f"a program could not be started: {result['failure']}")
        return ShellResult(out, complaints, **result)

    def _reply(self) -> tuple[dict[str, Any], bytes, bytes]:
        """Read a reply; a worker that hangs is killed, which ends the wait."""
        pipe = self._process.stdout
        assert pipe is not None
        alarm = threading.Timer(self._wait_s, _kill, [self._process])
        alarm.daemon = True
        alarm.start()
        try:
            header = pipe.read(REPLY.size)
            if len(header) < REPLY.size:
                raise EOFError("the worker ended")
            sizes = REPLY.unpack(header)
            text, out, complaints = (pipe.read(size) for size in sizes)
        finally:
            alarm.cancel()
        return json.loads(text), out, complaints

    def close(self) -> None:
        """End the process and all that it started."""
        self._finalizer()

    def forget(self) -> None:
        """Close this process's ends of the pipes and leave the worker to whoever started it."""
        self._finalizer.detach()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    os.close(pipe.fileno())


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker and its programs; they share its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _worker_command(root: Path, fence: Fence, limits: Limits) -> list[str]:
    """Return the command that starts a worker."""
    python = os.path.realpath(sys.executable)
    memory = str(limits.memory_bytes)
    if fence == "limits":
        return [python, "-I", "-S", str(_WORKER), memory]
    bwrap = shutil.which("bwrap") or "bwrap"
    words = [*_fence_words(bwrap, root), "--ro-bind", str(_WORKER), "/worker.py"]
    return [*words, python, "-I", "-S", "/worker.py", memory]


def _fence_words(bwrap: str, root: Path) -> list[str]:
    """Return bubblewrap's words: all namespaces apart, programs and corpus to read, no more."""
    words = [bwrap, "--unshare-all", "--cap-drop", "ALL", "--clearenv"]
    for name, value in _ENVIRONMENT.items():
        words += ["--setenv", name, value]
    for folder in ("/usr", "/bin", "/lib", "/lib64", sys.base_prefix):
        words += _bound(folder)
    for program in PROGRAMS.values():
        path = find_program(program.binary or program.name)
        if path is not None and not path.startswith("/usr/"):
            words += ["--ro-bind", path, path]
    words += ["--dev-bind", "/dev/null", "/dev/null", "--ro-bind", str(root), _INSIDE]
    return [*words, "--chdir", _INSIDE]


def _bound(folder: str) -> list[str]:
    """Return the words that show a folder of the system, or the link that stands in its place."""
    if os.path.islink(folder):
        return ["--symlink", os.readlink(folder), folder]
    return ["--ro-bind", folder, folder] if os.path.isdir(folder) else []
