"""Run pipelines inside the fence, one after the other, as they are asked for on standard input.

This file is started as a program of its own, by its path, and imports nothing of the package.
A request is a header (two lengths), a JSON object and what the first program reads; a reply is
a header (three lengths), a JSON object, what the last program wrote, and what all complained.
"""

import contextlib
import json
import os
import resource
import selectors
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

__all__ = ["REPLY", "REQUEST", "main"]

REQUEST = struct.Struct("!II")
REPLY = struct.Struct("!III")

_CHUNK = 1 << 16
_SIGPIPE_CODE = 128 + signal.SIGPIPE
_TIMEOUT_CODE = 124
_PROCESSES = 64


class _Run:
    """One pipeline while it runs.

    Args:
        request: ``stages``: pairs of a file and its argument array; and the limits.
        fed: What the first program reads.
    """

    def __init__(self, request: dict[str, Any], fed: bytes) -> None:
        self.limits = request["limits"]
        self.stages = request["stages"]
        self.fed = memoryview(fed)
        self.out = bytearray()
        self.complaints = bytearray()
        self.is_cut = False
        self.is_late = False
        self.is_left = False  # whoever asked is gone
        self.processes: list[subprocess.Popen[bytes]] = []
        self.selector = selectors.DefaultSelector()

    def run(self) -> dict[str, Any]:
        """Start every program, read what they write up to the limits, and leave none behind."""
        deadline = time.monotonic() + self.limits["wall_s"]
        try:
            self._start()
            self._read(deadline)
            self._wait(deadline)
        finally:
            self._kill()
            for key in list(self.selector.get_map().values()):
                self._close(key.fd)
            self.selector.close()
        codes = [process.returncode for process in self.processes]
        self.is_late = self.is_late or -signal.SIGXCPU in codes
        return {
            "exit_code": self._exit_code(codes[-1]),
            "timed_out": self.is_late,
            "truncated": self.is_cut,
        }

    def _start(self) -> None:
        error_read, error_write = os.pipe()
        self._watch(error_read)
        source = self._source()
        try:
            for path, words in self.stages:
                read, write = os.pipe()
                try:
                    process = subprocess.Popen(
                        words, executable=path, stdin=source, stdout=write, stderr=error_write
                    )
                finally:
                    os.close(source)
                    os.close(write)
                    source = read
                self.processes.append(process)
                cpu_s = self.limits["cpu_s"]
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        finally:
            os.close(error_write)
            self._watch(source)
        self.stdout = source
        self.selector.register(0, selectors.EVENT_READ)  # ends when whoever asked is gone

    def _source(self) -> int:
        """Return what the first program reads: nothing, or a pipe that is fed as it drains."""
        if not self.limits["is_fed"]:
            return os.open("/dev/null", os.O_RDONLY)
        read, write = os.pipe()
        os.set_blocking(write, False)
        self.selector.register(write, selectors.EVENT_WRITE)
        return read

    def _watch(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.selector.register(fd, selectors.EVENT_READ)

    def _read(self, deadline: float) -> None:
        """Feed and read until both outputs are closed, or a limit is reached."""
        while len(self.selector.get_map()) > 1 and not (self.is_cut or self.is_left):
            left = deadline - time.monotonic()
            if left <= 0:
                self.is_late = True
                return
            for key, events in self.selector.select(left):
                if key.fd == 0:
                    self.is_left = True  # nothing is sent before a reply
                elif events & selectors.EVENT_WRITE:
                    self._feed(key.fd)
                else:
                    self._take(key.fd)

    def _feed(self, fd: int) -> None:
        try:
            written = os.write(fd, self.fed[:_CHUNK])
        except BrokenPipeError:
            written = len(self.fed)
        except BlockingIOError:
            return
        self.fed = self.fed[written:]
        if not self.fed:
            self._close(fd)

    def _take(self, fd: int) -> None:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            self._close(fd)
            return
        if fd != self.stdout:
            room = self.limits["max_error_bytes"] - len(self.complaints)
            self.complaints += chunk[: max(0, room)]
            return
        self.out += chunk
        limit = self.limits["max_output_bytes"]
        if len(self.out) > limit:
            del self.out[limit:]
            self.is_cut = True

    def _close(self, fd: int) -> None:
        self.selector.unregister(fd)
        if fd != 0:
            os.close(fd)

    def _wait(self, deadline: float) -> None:
        """Wait for programs that have closed their outputs but not ended."""
        for process in self.processes if not (self.is_cut or self.is_late or self.is_left) else ():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.is_late = True
                return

    def _kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()

    def _exit_code(self, last: int) -> int:
        if self.is_late:
            return _TIMEOUT_CODE
        if self.is_cut:
            return _SIGPIPE_CODE
        return last if last >= 0 else 128 - last


def main() -> None:
    """Answer requests until standard input ends."""
    memory_bytes = int(sys.argv[1])
    for name, value in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_NOFILE, 256),
    ):
        resource.setrlimit(name, (value, value))
    _limit_processes()
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    _reply(replies, {"ready": True}, b"", b"")
    while header := requests.read(REQUEST.size):
        size, fed_size = REQUEST.unpack(header)
        request = json.loads(requests.read(size))
        run = _Run(request, requests.read(fed_size))
        try:
            result = run.run()
        except OSError as error:
            result = {"failure": str(error)}
        if run.is_left:
            return
        _reply(replies, result, run.out, run.complaints)


def _limit_processes() -> None:
    """Limit the number of processes, unless the system counts those outside the fence too."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, hard))
    try:
        pid = os.fork()
    except OSError:
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
        return
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))


def _reply(
    stream: BinaryIO, result: dict[str, Any], out: Sequence[int], complaints: Sequence[int]
) -> None:
    text = json.dumps(result).encode()
    stream.write(REPLY.pack(len(text), len(out), len(complaints)))
    stream.write(text + bytes(out) + bytes(complaints))
    stream.flush()


if __name__ == "__main__":
    main()
