"""Write an evaluation down: results.json, trajectories.jsonl, and a page that opens offline."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from string import Template
from typing import Any

from ..agents.rollouts import Trajectory, encodable, write_trajectories
from ..corpora.text import replace_surrogates
from ..envs.transcript import describe_action
from .evaluate import METRICS, Evaluation, Row
from .statistics import Interval

__all__ = ["HEADINGS", "format_interval", "write_report"]

HEADINGS = {
    "exact_match": "EM",
    "f1": "F1",
    "cover_exact_match": "Cover EM",
    "evidence_recall": "Recall",
    "return": "Return",
    "searches": "Searches",
    "turns": "Turns",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_COLORS = ("#6b7280", "#b45309", "#2563eb", "#059669", "#7c3aed", "#dc2626", "#0891b2", "#be185d")
_TEMPLATE = Path(__file__).with_name("report.html")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 332, 56, 24, 48


def write_report(evaluation: Evaluation, out: Path, *, command: str) -> None:
    """Write ``results.json``, ``trajectories.jsonl`` and ``report.html`` into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    results = _results(evaluation, command)
    text = json.dumps(encodable(results), indent=2, ensure_ascii=False, allow_nan=False)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    played = (episode.trajectory for episode in evaluation.episodes)
    write_trajectories(played, out / "trajectories.jsonl")
    page = _CONTROL.sub("\ufffd", replace_surrogates(_page(evaluation, command)))
    (out / "report.html").write_text(page, encoding="utf-8")


def format_interval(interval: Interval | None) -> str:
    """Return a mean with its interval in a few characters; a dash if there is none."""
    if interval is None:
        return "–"
    return f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _results(evaluation: Evaluation, command: str) -> dict[str, Any]:
    return {
        "seekgym": metadata.version("seekgym"),
        "command": command,
        "seed": evaluation.seed,
        "confidence": 0.95,
        "rows": [
            {
                "environment": row.environment,
                "env_hash": row.env_hash,
                "agent": row.agent,
                "sees_gold": row.sees_gold,
                "episodes": row.episodes,
                "failed": row.failed,
                "metrics": {name: _as_dict(row.metrics[name]) for name in METRICS},
                "kinds": {
                    kind: {name: _as_dict(interval) for name, interval in metrics.items()}
                    for kind, metrics in row.kinds.items()
                },
            }
            for row in evaluation.rows
        ],
        "episodes": [
            {
                "environment": episode.environment,
                "agent": episode.agent,
                "kind": episode.kind,
                "task_id": episode.trajectory.task_id,
                "seed": episode.trajectory.seed,
                "return": episode.trajectory.total_reward,
                **{key: episode.trajectory.outcome[key] for key in _EPISODE_KEYS},
            }
            for episode in evaluation.episodes
        ],
    }


_EPISODE_KEYS = (
    "answer",
    "exact_match",
    "f1",
    "cover_exact_match",
    "evidence_recall",
    "searches",
    "turn",
    "failure",
    "valid",
)


def _as_dict(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else interval._asdict()


def _page(evaluation: Evaluation, command: str) -> str:
    environments = list(dict.fromkeys(row.environment for row in evaluation.rows))
    sections = []
    for environment in environments:
        rows = [row for row in evaluation.rows if row.environment == environment]
        sections.append(
            f"<section><h2>{html.escape(environment)}</h2>{_table(rows)}"
            f"<h3>F1 against searches</h3>{_chart(rows)}"
            f"<h3>By type of question</h3>{_breakdown(rows)}</section>"
        )
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        command=html.escape(command),
        version=metadata.version("seekgym"),
        seed=evaluation.seed,
        episodes=len(evaluation.episodes),
        sections="".join(sections),
        samples="".join(map(_sample, _samples(evaluation))),
    )


def _table(rows: Sequence[Row]) -> str:
    heads = "".join(f"<th>{heading}</th>" for heading in HEADINGS.values())
    body = "".join(
        f"<tr><th>{html.escape(_label(row))}</th>"
        f"<td>{row.episodes}{f' (+{row.failed} failed)' if row.failed else ''}</td>"
        f"{''.join(_cell(row.metrics[metric]) for metric in METRICS)}</tr>"
        for row in rows
    )
    return (
        f"<div class=scroll><table><thead><tr><th>Agent</th><th>Episodes</th>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _breakdown(rows: Sequence[Row]) -> str:
    kinds = sorted({kind for row in rows for kind in row.kinds})
    heads = "".join(
        f"<th colspan=2>{html.escape(kind)} (n={max(_count(row, kind) for row in rows)})</th>"
        for kind in kinds
    )
    body = "".join(
        f"<tr><th>{html.escape(_label(row))}</th>"
        + "".join(
            _cell(row.kinds.get(kind, {}).get(metric))
            for kind in kinds
            for metric in ("exact_match", "f1")
        )
        + "</tr>"
        for row in rows
    )
    sub = "<th>EM</th><th>F1</th>" * len(kinds)
    return (
        f"<div class=scroll><table><thead><tr><th rowspan=2>Agent</th>{heads}</tr>"
        f"<tr>{sub}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _count(row: Row, kind: str) -> int:
    interval = row.kinds.get(kind, {}).get("exact_match")
    return 0 if interval is None else interval.number


def _cell(interval: Interval | None) -> str:
    if interval is None:
        return "<td>–</td>"
    return f"<td>{interval.mean:.2f}<small>{interval.low:.2f} to {interval.high:.2f}</small></td>"


def _label(row: Row) -> str:
    return f"{row.agent} (sees gold)" if row.sees_gold else row.agent


def _chart(rows: Sequence[Row]) -> str:
    """Return a drawing of F1 (with its interval) against the mean number of searches."""
    points = [
        (row, searches, score)
        for row in rows
        if (searches := row.metrics["searches"]) and (score := row.metrics["f1"])
    ]
    most = max([1.0, *(searches.mean for _, searches, _ in points)]) * 1.25
    marks = "".join(
        _mark(row, searches.mean / most, score, _COLORS[number % len(_COLORS)])
        for number, (row, searches, score) in enumerate(points)
    )
    lines = "".join(
        f"<line class=grid x1={_LEFT} x2={_WIDTH} y1={_y(level)} y2={_y(level)} />"
        f"<text x={_LEFT - 8} y={_y(level) + 4} text-anchor=end>{level:.2f}</text>"
        for level in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    step = 1 if most <= 8 else round(most / 6)
    ticks = "".join(
        f"<text x={_x(tick / most):.0f} y={_HEIGHT - _BOTTOM + 18} text-anchor=middle>{tick}</text>"
        for tick in range(0, int(most) + 1, step)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role=img aria-label="F1 against searches">'
        f"{lines}{ticks}"
        f"<text x={_WIDTH // 2} y={_HEIGHT - 8} text-anchor=middle>searches in an episode</text>"
        f'<text x=14 y={_HEIGHT // 2} transform="rotate(-90 14 {_HEIGHT // 2})" '
        f"text-anchor=middle>F1</text>{marks}</svg>"
    )


def _mark(row: Row, x: float, score: Interval, color: str) -> str:
    center = _x(x)
    return (
        f"<line x1={center:.1f} x2={center:.1f} y1={_y(score.low):.1f} y2={_y(score.high):.1f} "
        f'stroke="{color}" stroke-width=2 />'
        f'<circle cx={center:.1f} cy={_y(score.mean):.1f} r=5 fill="{color}" />'
        f'<text x={center + 9:.1f} y={_y(score.mean) - 7:.1f} fill="{color}">'
        f"{html.escape(_label(row))}</text>"
    )


def _x(share: float) -> float:
    return _LEFT + 12 + share * (_WIDTH - _LEFT - 24)


def _y(level: float) -> float:
    return _TOP + (1 - level) * (_HEIGHT - _BOTTOM - _TOP)


def _samples(evaluation: Evaluation) -> Iterable[Trajectory]:
    """Return one episode of each of the three agents that do most turns and see no gold."""
    rows = [row for row in evaluation.rows if not row.sees_gold] or list(evaluation.rows)
    rows.sort(key=lambda row: -(row.metrics["turns"].mean if row.metrics["turns"] else 0.0))
    agents = list(dict.fromkeys(row.agent for row in rows))[:3]
    chosen: list[Trajectory] = []
    for agent in agents:
        played = [e.trajectory for e in evaluation.episodes if e.agent == agent]
        chosen.extend(played[: 4 - len(agents)])
    return chosen[:3]


def _sample(trajectory: Trajectory) -> str:
    outcome = trajectory.outcome
    turns = "".join(
        f'<div class="message agent"><b>{html.escape(trajectory.agent)}</b>\n'
        f"{html.escape(describe_action(turn.action))}</div>"
        f'<div class="message"><b>environment</b>\n{html.escape(turn.observation)}</div>'
        for turn in trajectory.turns
    )
    gold = html.escape(" | ".join(outcome["gold_answers"]))
    return (
        f"<details><summary>{html.escape(trajectory.agent)}: "
        f"{html.escape(trajectory.question)}</summary>"
        f"<p>Gold: {gold}. Answer: {html.escape(str(outcome['answer']))}. "
        f"Return {trajectory.total_reward:.2f}.</p>{turns}</details>"
    )
