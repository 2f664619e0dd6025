"""Commands about tasks and worlds: certify, and world, which writes a world to disk."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ..corpora.errors import ConfigurationError
from ..corpora.knowledge import KnowledgeWorld
from ..corpora.knowledge import QuestionSettings as KnowledgeSettings
from ..corpora.phantom import PhantomWorld, QuestionSettings
from ..corpora.retrieval import BM25Retriever, Retriever
from ..corpora.tasks import Task
from ..leaderboard import certify as certify_environment
from .console import console, errors

__all__ = ["certify", "knowledge", "phantom", "world"]

world = typer.Typer(help="Make a world and write it to disk.", no_args_is_help=True)


def certify(
    env: Annotated[str, typer.Argument(help="An environment, for example seekgym/Phantom-v0.")],
    tasks: Annotated[int, typer.Option(help="How many tasks to draw.", min=1)] = 1_000,
) -> None:
    """Check that an environment's tasks can be proved through the tools and not be guessed.

    Plays the oracle and an agent that never searches, and prints one line for each finding.
    Exit code 1 if one is not as it must be.
    """
    progress = _progress("Playing")
    bar = progress.add_task("play", total=None)

    def show(done: int, total: int) -> None:
        progress.start()  # not before the environment was found and made
        progress.update(bar, completed=done, total=total)

    try:
        findings = certify_environment(env, tasks=tasks, on_progress=show)
    finally:
        if progress.live.is_started:
            progress.stop()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    marks = {True: "ok", False: "FAILED", None: ""}
    for finding in findings:
        table.add_row(finding.name, finding.figure, marks[finding.is_met])
    console.print(table)
    if any(finding.is_met is False for finding in findings):
        raise typer.Exit(1)


@world.callback()
def _world() -> None:
    """Make a world and write it to disk: corpus.jsonl, tasks.jsonl, facts.json."""


@world.command()
def phantom(
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    people: Annotated[int, typer.Option(help="How many people.")] = 5_000,
    seed: Annotated[int, typer.Option(help="Where every draw comes from.")] = 0,
    questions: Annotated[int, typer.Option(help="How many tasks.", min=0)] = 500,
    split: Annotated[str, typer.Option(help="train or test: worlds that share no name.")] = "train",
    style: Annotated[str, typer.Option(help="How articles are written: wiki or prose.")] = "wiki",
    hops: Annotated[
        tuple[int, int], typer.Option(help="The fewest and the most facts to join.")
    ] = (1, 6),
    constraints: Annotated[
        tuple[int, int], typer.Option(help="The fewest and the most attribute filters.")
    ] = (0, 0),
    check: Annotated[
        bool, typer.Option(help="Index the articles, and keep only tasks that BM25 can prove.")
    ] = True,
) -> None:
    """Write an invented universe: corpus.jsonl, tasks.jsonl, facts.json.

    The articles are streamed, so a million people need little memory. Tasks are kept only if
    BM25 finds each article of their proof in the top 3, and if they do not leak; for that the
    articles are indexed first.
    """
    settings = QuestionSettings(hops=hops, constraints=constraints)
    made = PhantomWorld(people, seed, split=split, style=style)  # type: ignore[arg-type]

    def draw(retriever: Retriever | None) -> Sequence[Task]:
        return made.tasks(questions, seed=seed, settings=settings, retriever=retriever)

    _write(made, out, draw if questions else None, check=check)
    console.print(f"Wrote {people:,} people and {questions} tasks to {out}", markup=False)


@world.command()
def knowledge(
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    entities: Annotated[int, typer.Option(help="How many entities.")] = 3_600,
    seed: Annotated[int, typer.Option(help="Where every draw comes from.")] = 0,
    questions: Annotated[int, typer.Option(help="How many tasks.", min=0)] = 500,
    split: Annotated[str, typer.Option(help="train or test: worlds that share no word.")] = "train",
    coverage: Annotated[
        str, typer.Option(help="Which article states an edge: either, both, subject, object.")
    ] = "either",
    noise: Annotated[float, typer.Option(help="Share of outdated side documents.")] = 0.0,
    obfuscation: Annotated[
        float, typer.Option(help="The chance that a mention is replaced by a description.")
    ] = 0.0,
    schema: Annotated[
        str | None, typer.Option(help="A schema in JSON or YAML; an encyclopedia's if left out.")
    ] = None,
    check: Annotated[
        bool, typer.Option(help="Index the articles, and keep only tasks that BM25 can prove.")
    ] = True,
) -> None:
    """Write an invented encyclopedia: corpus.jsonl, tasks.jsonl, facts.json.

    Every kind of question is drawn. Each task is written with its difficulty and its plain form.
    """
    settings = KnowledgeSettings(obfuscation=obfuscation)
    made = KnowledgeWorld(
        entities,
        seed,
        split=split,  # type: ignore[arg-type]
        coverage=coverage,  # type: ignore[arg-type]
        noise=noise,
        schema=schema,
    )

    def draw(retriever: Retriever | None) -> Sequence[Task]:
        return made.tasks(questions, seed=seed, settings=settings, retriever=retriever)

    _write(made, out, draw if questions else None, check=check)
    console.print(f"Wrote {entities:,} entities and {questions} tasks to {out}", markup=False)


def _write(
    made: PhantomWorld | KnowledgeWorld,
    out: Path,
    draw: Callable[[Retriever | None], Sequence[Task]] | None,
    *,
    check: bool,
) -> None:
    """Draw the tasks of a world and write it, with progress."""
    if out.exists() and not out.is_dir():
        raise ConfigurationError(f"--out {out} is a file; give a folder")
    tasks: Sequence[Task] = ()
    if draw is not None:
        with tempfile.TemporaryDirectory() as folder, errors.status("Drawing tasks"):
            tasks = draw(BM25Retriever(made.corpus, index_dir=folder) if check else None)
    with _progress("Writing {task.description}") as progress:
        bars: dict[str, TaskID] = {}

        def show(name: str, lines: int, total: int) -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=total)
            progress.update(bars[name], completed=lines)

        made.export(out, tasks=tasks, progress=show)


def _progress(text: str) -> Progress:
    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=errors)
