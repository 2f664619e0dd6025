"""What commands do with teams: play them beside single agents, and draw their traces."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from ..corpora.errors import ConfigurationError, raise_unknown
from ..envs.team import draw_html, draw_text, parallel_env, read_traces, write_traces
from ..leaderboard import TeamComparison, compare_teams
from ..leaderboard.teams import TEAM_METRICS
from ..registration import TEAM_CONFIGURATIONS
from .console import console, printable

__all__ = ["TEXT_TEAMS", "check_teams", "play_teams", "show_traces"]

TEXT_TEAMS = tuple(name for name in TEAM_CONFIGURATIONS if "Menu" not in name)
_HEADINGS = {
    "exact_match": "EM",
    "f1": "F1",
    "evidence_recall": "Recall",
    "ticks": "Ticks",
    "turns": "Turns",
    "calls": "Searches and reads",
    "words": "Words sent",
}


def check_teams(names: Sequence[str]) -> list[str]:
    """Return the ids of teams, each once.

    Raises:
        ConfigurationError: There is no such team.
    """
    for name in names:
        if name not in TEXT_TEAMS:
            raise_unknown("team", name, TEXT_TEAMS)
    return list(dict.fromkeys(names))


def play_teams(
    team_id: str, agents: Sequence[str], folder: Path, *, episodes: int | None, seed: int
) -> None:
    """Play every team, and agents alone, on equal tasks; print a table and write the traces."""
    env = parallel_env(**TEAM_CONFIGURATIONS[team_id])
    found = compare_teams(env, agents=agents, episodes=episodes, seed=seed)
    _print_table(team_id, found)
    for name, traces in found.traces.items():
        write_traces(traces, folder / f"{team_id.rpartition('/')[2]}-{name}.jsonl")
    rows = [row._asdict() for row in found.rows]
    text = json.dumps({"team": team_id, "tasks": found.tasks, "rows": rows}, indent=1)
    path = folder / f"{team_id.rpartition('/')[2]}.json"
    path.write_text(text + "\n", encoding="utf-8")


def show_traces(file: Path, number: int | None, page: Path | None) -> None:
    """Draw the traces of a file as timelines, or write them to a page.

    Raises:
        ConfigurationError: There are fewer traces than ``number``.
    """
    traces = read_traces(file)
    if number is not None and number > len(traces):
        raise ConfigurationError(f"--number {number}: {file} has {len(traces)} traces")
    chosen = traces if number is None else traces[number - 1 : number]
    if page is not None:
        page.write_text(draw_html(chosen), encoding="utf-8")
        console.print(f"Wrote {page}", soft_wrap=True, markup=False, highlight=False)
        return
    for trace in chosen:
        text = printable(draw_text(trace))
        console.print(text + "\n", markup=False, highlight=False, soft_wrap=True)


def _print_table(team_id: str, found: TeamComparison) -> None:
    title = f"{team_id}: teams, and agents alone on the same {found.tasks} tasks"
    table = Table(title=escape(title), title_justify="left", padding=(0, 1, 0, 0))
    table.add_column("Who", no_wrap=True)
    for metric in TEAM_METRICS:
        table.add_column(_HEADINGS[metric], justify="right")
    for row in found.rows:
        name = escape(f"{row.player}*" if row.sees_gold else row.player)
        cells = [row.metrics[metric] for metric in TEAM_METRICS]
        table.add_row(name, *("–" if cell is None else f"{cell:.2f}" for cell in cells))
    console.print(table)
