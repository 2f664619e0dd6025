"""Searches of raw text with an index, against rg, GNU grep and parallel shards.

A world's articles are written as JSON lines, 1 GB of them, and indexed. Then 50 literals and 50
regular expressions, each drawn from the corpus and matching fewer than 100 lines of it, are run by
four means through the same worker processes: the plain ``rg`` and ``grep`` on the whole file,
``rg`` on shards of it in parallel with the outputs joined in order, and the indexed engine. Every
figure is a median over the patterns with the files in the disk cache. Each output of the engine is
compared with that of the plain program. All is done twice: inside bubblewrap, and with limits
alone. Then: pipelines that an index cannot help, and what a search costs as the corpus grows.

Run: python benchmarks/grep.py [megabytes ...]
"""

import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np

from seekgym.corpora.phantom import PhantomWorld
from seekgym.corpora.shell import Limits, Pipeline, PipelineRunner, PlainRunner, Stage, active_fence
from seekgym.corpora.shell.build import build_index
from seekgym.corpora.shell.engine import IndexedEngine
from seekgym.corpora.shell.index import GrepIndex
from seekgym.corpora.shell.sandbox import Fence

MEGABYTES = (100, 300, 1_000)
PATTERNS = 50
MOST_LINES = 99
PEOPLE = 100_000  # in each world that the corpus is made of
SHARDS = 8
FENCES: tuple[Fence, ...] = ("limits", "bubblewrap")
LIMITS = Limits(wall_s=120.0, cpu_s=120)
FILE = "corpus.jsonl"
# Pipelines with little or nothing for an index to do.
HARD = [
    ("rg", "-c", "."),
    ("rg", "-c", "the"),
    ("rg", "-c", "-v", "Meskabrev"),
    ("rg", "-b", "-o", "Meskabrev"),
    ("rg", "-c", "born|died|likes|named|father|mother|sister|brother"),
    ("rg", "-c", "-i", "[a-z]+ was born on 1[0-9]+"),
    ("rg", "-c", "-w", "on 1490-11-06"),
    ("rg", "-c", "xq"),
    ("grep", "-c", "the"),
    ("grep", "-c", "-i", "was born"),
    ("grep", "-c", "-F", "190"),
    ("grep", "-c", "-v", "the"),
    ("grep", "-c", "-E", "(sister|brother) of [A-Z][a-z]+ing"),
]


def write_corpus(path: Path, size: int) -> None:
    """Write articles of as many worlds as it takes."""
    left = size
    with open(path, "w", encoding="utf-8") as file:
        for seed in count():
            for document in PhantomWorld(PEOPLE, seed, style="prose").corpus:
                row = {"id": f"{seed}-{document.id}", "text": document.text}
                left -= file.write(json.dumps(row, ensure_ascii=False) + "\n")
                if left <= 0:
                    return


def copy_start(source: Path, target: Path, size: int) -> None:
    """Copy the first lines of a file."""
    target.parent.mkdir()
    with open(source, "rb") as whole, open(target, "wb") as start:
        for chunk in iter(lambda: whole.read(min(8 << 20, size - start.tell())), b""):
            start.write(chunk)
        start.write(whole.readline())


def split(source: Path, folder: Path) -> list[str]:
    """Write a file as shards of whole lines, and return their names."""
    folder.mkdir()
    size = source.stat().st_size // SHARDS + 1
    names = []
    with open(source, "rb") as whole:
        for number in range(SHARDS):
            names.append(f"{number}.jsonl")
            with open(folder / names[-1], "wb") as shard:
                while shard.tell() < size and (chunk := whole.read(min(8 << 20, size))):
                    shard.write(chunk)
                shard.write(whole.readline())
    return names


def spans(path: Path, rng: np.random.Generator) -> Iterator[str]:
    """Draw pieces of one to three words from lines of the corpus."""
    size = min(path.stat().st_size, MEGABYTES[0] * 1_000_000)
    with open(path, "rb") as file:
        while True:
            file.seek(int(rng.integers(size - 10_000)))
            file.readline()
            text = json.loads(file.readline())["text"]
            words = list(re.finditer(r"[\w-]+", text))
            first = int(rng.integers(len(words) - 3))
            last = first + int(rng.integers(3))
            yield text[words[first].start() : words[last].end()]


def expressions(path: Path, rng: np.random.Generator) -> Iterator[str]:
    """Draw regular expressions that need a literal: one of five forms."""
    drawn = spans(path, rng)
    for number in count():
        text = next(drawn)
        yield (
            rf"\b{text}\w*\b",
            f"{text}[^.]*\\.",
            f"({text}|{next(drawn)})",
            rf"[A-Z][a-z]+ \w+ {text}",
            f"{text[0]}.?{text[1:]}( [a-z]+)*",
        )[number % 5]


def choose(drawn: Iterator[str], runner: PipelineRunner, option: str) -> list[str]:
    """Return the first patterns that match at least one line and fewer than 100."""
    chosen: list[str] = []
    for pattern in drawn:
        if len(pattern) < 5 or pattern in chosen:
            continue
        lines = runner.run(stage("rg", "-c", option, "-m", "100", pattern)).stdout
        if 1 <= int(lines or 0) <= MOST_LINES:
            chosen.append(pattern)
            if len(chosen) == PATTERNS:
                return chosen
    raise AssertionError


def stage(program: str, *words: str, path: str = FILE) -> Pipeline:
    """Return a pipeline of one program over one file."""
    return Pipeline((Stage(program, (*words, path)),))


def seconds_of(call: Callable[..., object], *arguments: object) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


class Rivals:
    """The four means, over one corpus and in one fence."""

    def __init__(self, root: Path, index: GrepIndex, shards: Path | None, fence: Fence) -> None:
        self.plain = PlainRunner(root, limits=LIMITS, fence=fence)
        self.engine = IndexedEngine(root, index, self.plain)
        self.names = [] if shards is None else sorted(os.listdir(shards))
        self.shards = PlainRunner(shards or root, limits=LIMITS, fence=fence)
        self.pool = ThreadPoolExecutor(os.cpu_count())

    def close(self) -> None:
        """End every worker."""
        self.pool.shutdown()
        self.engine.close()
        self.plain.close()
        self.shards.close()

    def sharded(self, words: Sequence[str]) -> bytes:
        """Search the shards in parallel with rg, and join what it writes."""

        def search(name: str) -> bytes:
            return self.shards.run(stage("rg", *words, path=name)).stdout

        return b"".join(self.pool.map(search, self.names))

    def compare(self, patterns: Sequence[str], *, is_literal: bool) -> None:
        """Print the medians over patterns of one kind."""
        times: dict[str, list[float]] = {}
        served = 0
        for pattern in patterns:
            outputs: dict[str, bytes] = {}
            for program, option in (
                ("rg", "-F" if is_literal else "--no-heading"),
                ("grep", "-F" if is_literal else "-P"),
            ):
                search = stage(program, option, "-e", pattern)
                for name, runner in ((program, self.plain), (f"{program}+", self.engine)):
                    start = time.perf_counter()
                    outputs[name] = runner.run(search).stdout
                    times.setdefault(name, []).append(time.perf_counter() - start)
                served += self.engine.served
                assert outputs[program] == outputs[f"{program}+"], pattern
            if self.names:
                start = time.perf_counter()
                merged = self.sharded(("-F" if is_literal else "--no-heading", "-e", pattern))
                times.setdefault("shards", []).append(time.perf_counter() - start)
                assert merged == outputs["rg"], pattern
        self._print("literals" if is_literal else "expressions", times, served)

    def _print(self, kind: str, times: dict[str, list[float]], served: int) -> None:
        middle = {name: statistics.median(taken) * 1e3 for name, taken in times.items() if taken}
        figures = "  ".join(f"{name} {taken:.1f} ms" for name, taken in middle.items())
        ratios = [
            f"rg {middle['rg'] / middle['rg+']:.1f} x",
            f"grep {middle['grep'] / middle['grep+']:.1f} x",
        ]
        if "shards" in middle:
            ratios.append(f"shards {middle['shards'] / middle['rg+']:.1f} x")
        print(f"  {self.plain.fence:11}{kind:12}{figures}   ({served}/{2 * PATTERNS} served)")
        print(f"  {'':11}{'':12}faster than {', '.join(ratios)}", flush=True)

    def check_hard(self, turns: int) -> None:
        """Print what the engine costs where an index cannot help, by the best of some turns."""
        ratios = {}
        for words in HARD:
            times: tuple[list[float], list[float]] = ([], [])
            outputs = set()
            for turn in range(2 * turns):
                runner = (self.plain, self.engine)[turn % 2]
                start = time.perf_counter()
                outputs.add(runner.run(stage(*words)).stdout)
                times[turn % 2].append(time.perf_counter() - start)
            assert len(outputs) == 1, words
            ratios[" ".join(words)] = min(times[1]) / min(times[0])
        worst = max(ratios, key=ratios.__getitem__)
        middle = statistics.median(ratios.values())
        print(
            f"  {self.plain.fence:11}{'hard':12}at worst {ratios[worst]:.2f} x the plain time "
            f"({worst}), median {middle:.2f} x",
            flush=True,
        )


def build(root: Path) -> GrepIndex:
    """Build the index of a corpus and print what that took."""
    path = root.with_suffix(".grepindex")
    size = (root / FILE).stat().st_size
    processor = time.process_time()
    seconds = seconds_of(build_index, root, path)
    processor = time.process_time() - processor
    opening = seconds_of(GrepIndex, path)
    index = GrepIndex(path)
    rates = size / seconds / 1e6, size / processor / 1e6
    print(
        f"{size / 1e6:.0f} MB: built at {rates[0]:.1f} MB/s ({rates[1]:.1f} MB per second of "
        f"processor), index {index.size_bytes / size:.1%} of the corpus, opened in "
        f"{opening * 1e3:.0f} ms",
        flush=True,
    )
    return index


def main() -> None:
    """Print all figures."""
    megabytes = sorted(map(int, sys.argv[1:])) or MEGABYTES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        largest = folder / str(megabytes[-1])
        largest.mkdir()
        seconds = seconds_of(write_corpus, largest / FILE, megabytes[-1] * 1_000_000)
        print(f"{megabytes[-1]} MB of articles written in {seconds:.0f} s", flush=True)
        indexes = {largest: build(largest)}
        plain = PlainRunner(largest, limits=LIMITS)
        engine = IndexedEngine(largest, indexes[largest], plain)
        literals = choose(spans(largest / FILE, np.random.default_rng(1)), engine, "-F")
        others = choose(
            expressions(largest / FILE, np.random.default_rng(2)), engine, "--no-heading"
        )
        engine.close()
        plain.close()
        print(f"literals like {literals[:4]}\nexpressions like {others[:5]}", flush=True)
        for size in megabytes[:-1]:
            copy_start(largest / FILE, folder / str(size) / FILE, size * 1_000_000)
            indexes[folder / str(size)] = build(folder / str(size))
        split(largest / FILE, folder / "shards")
        for root, index in sorted(indexes.items(), key=lambda item: int(item[0].name)):
            print(f"{root.name} MB")
            for fence in FENCES if active_fence() == "bubblewrap" else FENCES[:1]:
                rivals = Rivals(root, index, folder / "shards" if root == largest else None, fence)
                rivals.compare(literals, is_literal=True)
                rivals.compare(others, is_literal=False)
                rivals.check_hard(turns=15 if int(root.name) < 200 else 3)
                rivals.close()


if __name__ == "__main__":
    main()
