"""Environment steps per second on seekgym/QA-v0, searches included.

Each episode makes three searches, reads a document and answers; a second workload does nothing
but search. Rivals in the same run: Gymnasium's SyncVectorEnv against our vector, and an SQLite
FTS5 index (what the standard library has) against the default retriever. Every figure is the
median of several rounds, with the best beside it, since a shared machine is noisy.

Run: python benchmarks/steps.py
"""

import re
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import seekgym  # noqa: F401 - registers the environments
from seekgym.corpora import Corpus, Hit, load_corpus, load_tasks
from seekgym.envs import QAEnv

ENVS = 64
ROUNDS = 9
STEPS = 3_000  # in a round
CORPUS = load_corpus("hotpotqa-100")
TASKS = load_tasks("hotpotqa-100", CORPUS)
QUERIES = [
    " ".join(task.question.split()[start : start + 6]) for task in TASKS for start in (0, 2, 4)
]


class FTS5Retriever:
    """BM25 by SQLite: the rival."""

    name = "sqlite-fts5"

    def __init__(self, corpus: Corpus) -> None:
        self.ids = corpus.ids
        self.base = sqlite3.connect(":memory:")
        self.base.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize=porter)")
        rows = ((document.title + "\n" + document.text,) for document in corpus)
        self.base.executemany("INSERT INTO texts VALUES (?)", rows)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the rankings."""
        return [self._ranking(query, k) for query in queries]

    def _ranking(self, query: str, k: int) -> list[Hit]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        rows = self.base.execute(
            "SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (words, k)
        )
        return [Hit(self.ids[row - 1], -rank) for row, rank in rows]


def action(number: int, *, only_searches: bool) -> dict[str, Any]:
    """Return the action of one step of the script."""
    part = number % 5
    if only_searches or part < 3:
        return {"name": "search", "arguments": {"query": QUERIES[number * 7 % len(QUERIES)]}}
    if part == 3:
        return {"name": "read", "arguments": {"document_id": CORPUS.ids[number % len(CORPUS)]}}
    return {"name": "answer", "arguments": {"text": "yes"}}


def run_single(env: gym.Env[Any, Any], *, only_searches: bool) -> float:
    """Return steps per second; a reset is part of the step before it."""
    env.reset(seed=0)
    actions = [action(number, only_searches=only_searches) for number in range(STEPS)]
    start = time.perf_counter()
    for each in actions:
        _, _, terminated, truncated, _ = env.step(each)
        if terminated or truncated:
            env.reset()
    return STEPS / (time.perf_counter() - start)


def run_vector(vector: gym.vector.VectorEnv[Any, Any, Any], *, only_searches: bool) -> float:
    """Return steps of single environments per second."""
    vector.reset(seed=0)
    rows = [
        tuple(action(row + 13 * env, only_searches=only_searches) for env in range(ENVS))
        for row in range(STEPS // ENVS)
    ]
    start = time.perf_counter()
    for row in rows:
        vector.step(row)
    return ENVS * len(rows) / (time.perf_counter() - start)


def rounds(run: Callable[[], float]) -> tuple[float, float]:
    """Return the median and the best of several rounds, after one that warms up."""
    run()
    rates = [run() for _ in range(ROUNDS)]
    return statistics.median(rates), max(rates)


def show(label: str, measured: tuple[float, float], rival: tuple[float, float] | None) -> None:
    """Print one line of the table."""
    ratio = f"{measured[0] / rival[0]:6.2f} x" if rival else ""
    print(f"{label:48}{measured[0]:10,.0f}{measured[1]:10,.0f}   {ratio}", flush=True)


def split_of_time() -> None:
    """Print where the time of a search step goes."""
    env = QAEnv()
    env.reset(seed=0)
    actions = [action(number, only_searches=True) for number in range(STEPS)]
    search, tool = env.retriever.search, env.tools["search"]
    rankings = [search([each["arguments"]["query"]], 3) for each in actions]
    texts = [each["arguments"] for each in actions]

    def seconds(call: Callable[[int], object]) -> float:
        def once() -> float:
            start = time.perf_counter()
            for number in range(STEPS):
                call(number)
            return time.perf_counter() - start

        return statistics.median(once() for _ in range(ROUNDS)) / STEPS * 1e6

    total = 1e6 / rounds(partial(run_single, env, only_searches=True))[0]
    retrieval = seconds(lambda number: search([texts[number]["query"]], 3))
    formatting = seconds(lambda number: tool.run(texts[number], rankings[number]))
    print(
        f"\na search step takes {total:.0f} us: retrieval {retrieval:.0f}, "
        f"formatting {formatting:.0f}, rest {total - retrieval - formatting:.0f}"
    )


def main() -> None:
    """Print the table."""
    print(f"{'steps per second':48}{'median':>10}{'best':>10}   against the row below it")
    make = partial(gym.make, "seekgym/QA-v0")
    for label, only_searches in (("episodes", False), ("searches only", True)):
        ours = gym.make_vec(
            "seekgym/QA-v0",
            num_envs=ENVS,
            vectorization_mode="vector_entry_point",
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        sync = SyncVectorEnv([make] * ENVS, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        fts5 = QAEnv(retriever=FTS5Retriever(CORPUS))
        rival = rounds(partial(run_single, fts5, only_searches=only_searches))
        single = rounds(partial(run_single, make(), only_searches=only_searches))
        slow = rounds(partial(run_vector, sync, only_searches=only_searches))
        fast = rounds(partial(run_vector, ours, only_searches=only_searches))
        show(f"{label}: one environment, tantivy", single, rival)
        show(f"{label}: one environment, SQLite FTS5", rival, None)
        show(f"{label}: vector of {ENVS}, ours", fast, slow)
        show(f"{label}: vector of {ENVS}, SyncVectorEnv", slow, None)
    split_of_time()


if __name__ == "__main__":
    main()
