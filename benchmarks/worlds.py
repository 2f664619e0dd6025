"""Time and memory of phantom and knowledge worlds; phantom ones beside PhantomWiki's generator.

Run it alone on the machine::

    python benchmarks/worlds.py               # two minutes
    python benchmarks/worlds.py --index       # and index a million articles
    python benchmarks/worlds.py --reference V/bin/python   # and run phantom-wiki in the same run

Every measurement runs in a process of its own, so that its peak memory is its own. phantom-wiki
wants Python 3.12 or newer and SWI-Prolog: name an interpreter that has it. Without one its figures
are recorded ones: phantom-wiki 1.0.3 on 2 cores, question depth 20, 500 questions.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from seekgym.corpora import BM25Retriever
from seekgym.corpora.knowledge import KnowledgeWorld
from seekgym.corpora.knowledge import QuestionSettings as KnowledgeQuestions
from seekgym.corpora.phantom import PhantomWorld, QuestionSettings

REFERENCE_S = {50: 77.0, 500: 300.0}  # 500 people had not ended after 300 s
SETS = QuestionSettings(hops=(1, 9), kinds=("chain", "attribute", "count"), semantics="set")
SIZES = (10_000, 100_000, 1_000_000)
ENTITIES = (3_600, 10_000, 30_000, 100_000)
EVERYTHING = KnowledgeQuestions(hops=(2, 6), constraints=(2, 4), obfuscation=0.5)
MEGABYTE = 1_024  # in the units of ru_maxrss, which are kilobytes on Linux


def time_questions(people: int, repeats: int, settings: QuestionSettings) -> dict[str, float]:
    """Time a world with 500 questions: the first run, and the median of all."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        PhantomWorld(people, 7).tasks(500, settings=settings)
        seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "median": statistics.median(seconds), "best": min(seconds)}


def time_world(people: int) -> dict[str, float]:
    """Time a world alone and its 500 definite questions."""
    start = time.perf_counter()
    world = PhantomWorld(people, 7)
    middle = time.perf_counter()
    world.tasks(500)
    return {"world": middle - start, "questions": time.perf_counter() - middle}


def time_index(people: int) -> dict[str, float]:
    """Time rendering and indexing every article."""
    corpus = PhantomWorld(people, 7).corpus
    start = time.perf_counter()
    BM25Retriever(corpus)
    return {"index": time.perf_counter() - start}


def time_knowledge(entities: int) -> dict[str, float]:
    """Time a knowledge world, its index, and 1,000 questions of every kind that it can prove."""
    start = time.perf_counter()
    world = KnowledgeWorld(entities, 7)
    drawn = time.perf_counter()
    retriever = BM25Retriever(world.corpus)
    indexed = time.perf_counter()
    world.tasks(1_000, settings=EVERYTHING, retriever=retriever)
    asked = time.perf_counter()
    return {
        "world": drawn - start,
        "index": indexed - drawn,
        "questions": asked - indexed,
        "all": asked - start,
    }


MEASUREMENTS: dict[str, Callable[[int], dict[str, float]]] = {
    "definite": lambda people: time_questions(people, 15, QuestionSettings()),
    "set": lambda people: time_questions(people, 5, SETS),
    "world": time_world,
    "index": time_index,
    "knowledge": time_knowledge,
}


def measure(name: str, people: int) -> dict[str, float]:
    """Run one measurement in a process of its own; add its peak memory in MB."""
    command = [sys.executable, __file__, "--measure", name, str(people)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


def run_reference(python: str) -> float:
    """Return the seconds that phantom-wiki takes for 50 people and 500 questions."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "phantom_wiki", "--quiet", "--output-dir", folder, "--seed", "1"]
        command += ["--max-family-tree-size", "50", "--max-family-tree-depth", "20"]
        command += ["--question-depth", "20", "--num-questions-per-type", "10"]
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True, cwd=folder)
        return time.perf_counter() - start


def report_small(python: str | None) -> None:
    """Print the small worlds beside the reference."""
    references = dict(REFERENCE_S)
    if python is not None:
        references[50] = run_reference(python)
        print(f"phantom-wiki, 50 people, in this run: {references[50]:.1f} s")
    print("world with 500 questions      first     median       best   reference   times faster")
    for semantics in ("definite", "set"):
        for people, reference in references.items():
            row = measure(semantics, people)
            more = ">" if people == 500 else " "
            print(
                f"{people:>5} people, {semantics:<8} "
                f"{row['first']:>9.3f} s {row['median']:>9.3f} s "
                f"{row['best']:>8.3f} s {more:>4}{reference:>5.0f} s   {more}"
                f"{reference / row['median']:,.0f} by the median"
            )


def report_large() -> None:
    """Print how cost grows from 10,000 to a million people."""
    print("\nlarge worlds              world   500 questions     peak memory")
    rows = {people: measure("world", people) for people in SIZES}
    for people, row in rows.items():
        print(
            f"{people:>9,} people {row['world']:>11.3f} s {row['questions']:>11.3f} s "
            f"{row['peak_mb']:>12,.0f} MB"
        )
    slope = growth({people: row["world"] for people, row in rows.items()})
    print(f"time grows as people to the power {slope:.2f} (world alone, least squares of the logs)")


def report_knowledge() -> None:
    """Print how the cost of knowledge worlds grows."""
    print("\nknowledge worlds          world      index   1,000 questions        all   peak memory")
    rows = {entities: measure("knowledge", entities) for entities in ENTITIES}
    for entities, row in rows.items():
        print(
            f"{entities:>9,} entities {row['world']:>9.3f} s {row['index']:>8.2f} s "
            f"{row['questions']:>15.2f} s {row['all']:>8.2f} s {row['peak_mb']:>10,.0f} MB"
        )
    slope = growth({entities: row["world"] + row["index"] for entities, row in rows.items()})
    print(f"world and index grow as entities to the power {slope:.2f}")


def growth(seconds: dict[int, float]) -> float:
    """Return the power of the size that time grows with, by least squares of the logs."""
    logs = [(math.log(size), math.log(taken)) for size, taken in seconds.items()]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def main() -> None:
    """Print the table, or one measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", action="store_true", help="index a million articles too")
    parser.add_argument("--reference", metavar="PYTHON", help="an interpreter with phantom-wiki")
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "PEOPLE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, people = arguments.measure
        figures = MEASUREMENTS[name](int(people))
        figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE
        print(json.dumps(figures))
        return
    report_small(arguments.reference)
    report_large()
    report_knowledge()
    if arguments.index:
        row = measure("index", 1_000_000)
        print(
            f"\na million articles rendered and indexed in {row['index']:.1f} s, "
            f"peak memory {row['peak_mb']:,.0f} MB"
        )


if __name__ == "__main__":
    main()
