"""An event loop in a thread of its own, so that plain calls can wait for many requests at once."""

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

__all__ = ["BackgroundLoop", "Closable"]

_T = TypeVar("_T")


class Closable(Protocol):
    """What is closed in the loop before that stops."""

    async def aclose(self) -> None:
        """Close it."""


class BackgroundLoop:
    """Runs coroutines for any thread; stops when it is closed, forgotten, or at the end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        names = ThreadPoolExecutor(16, thread_name_prefix="seekgym-live-names")
        self._loop.set_default_executor(names)  # what resolves names
        thread = threading.Thread(
            target=self._loop.run_forever, daemon=True, name="seekgym-live-web"
        )
        thread.start()
        self._closables: list[Closable] = []
        self._stop = weakref.finalize(
            self, _stop, os.getpid(), self._loop, thread, names, self._closables
        )

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Return what a coroutine gives; it is cancelled if the waiting is interrupted."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def close_with(self, closable: Closable) -> None:
        """Let something be closed before the loop stops."""
        self._closables.append(closable)

    def close(self) -> None:
        """Stop."""
        self._stop()


def _stop(
    process: int,
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    names: ThreadPoolExecutor,
    closables: list[Closable],
) -> None:
    if process != os.getpid():
        return  # the thread did not come along when the process was forked

    async def close_all() -> None:
        for closable in closables:
            await closable.aclose()

    asyncio.run_coroutine_threadsafe(close_all(), loop).result(timeout=10)
    names.shutdown(wait=False, cancel_futures=True)  # one may hang: it is not waited for
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
