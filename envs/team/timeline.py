"""Draw a team's trace as a timeline: a row for each agent, a column for each tick."""

import html
from collections.abc import Sequence

from ...corpora.text import cut_text
from .trace import ACTS, Event, measure

__all__ = ["draw_html", "draw_text"]

_LABELS = {"assign": "assign", "report": "report", "hand_over": "hand over", "answer": "answer"}
_WIDTH = 72
_STYLE = (
    "body{font:14px/1.4 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.6rem 0}td,th{border:1px solid #ccc;"
    "padding:.2rem .5rem;text-align:left;white-space:nowrap}.assign,.hand_over{background:#dbe7fb}"
    ".call{background:#eef}.report{background:#e3f4df}.answer{background:#ffe9b8}"
    ".fault{background:#f8d0d0}li{overflow-wrap:anywhere}.box{overflow-x:auto}"
)


def draw_text(events: Sequence[Event]) -> str:
    """Return one episode as text: the timeline, then each event, then the metrics."""
    if not events:
        return ""
    cells, agents, ticks = _cells(events)
    widths = [max([len(str(t)), *(len(_label(cells.get((a, t)))) for a in agents)]) for t in ticks]
    name = max(len(agent) for agent in agents)
    rows = [_row("tick", map(str, ticks), name, widths)]
    for agent in agents:
        rows.append(_row(agent, [_label(cells.get((agent, t))) for t in ticks], name, widths))
    lines = [line for event in events if (line := _line(event))]
    return "\n".join([_title(events), "", *rows, "", *lines, "", _summary(events)])


def draw_html(episodes: Sequence[Sequence[Event]]) -> str:
    """Return episodes as a page of its own; everything in them is escaped."""
    body = "".join(_section(events) for events in episodes if events)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Team trace</title>"
        f"<style>{_STYLE}</style><body>{body}</body></html>"
    )


def _section(events: Sequence[Event]) -> str:
    cells, agents, ticks = _cells(events)
    head = "".join(f"<th>{tick}</th>" for tick in ticks)
    rows = []
    for agent in agents:
        row = "".join(_cell(cells.get((agent, tick))) for tick in ticks)
        rows.append(f"<tr><th>{html.escape(agent)}</th>{row}</tr>")
    lines = "".join(f"<li>{html.escape(line)}</li>" for e in events if (line := _line(e, 2_000)))
    return (
        f"<h2>{html.escape(_title(events))}</h2><div class=box><table><tr><th>tick</th>{head}</tr>"
        f"{''.join(rows)}</table></div><p>{html.escape(_summary(events))}</p><ul>{lines}</ul>"
    )


def _cell(event: Event | None) -> str:
    if event is None:
        return "<td></td>"
    shown = html.escape(event.text, quote=True)
    return f'<td class="{event.kind}" title="{shown}">{html.escape(_label(event))}</td>'


def _cells(
    events: Sequence[Event],
) -> tuple[dict[tuple[str, int], Event], list[str], list[int]]:
    cells = {(event.agent, event.tick): event for event in events if event.kind in ACTS}
    named = [agent for event in events for agent in event.detail.get("agents", ())]
    agents = list(dict.fromkeys([*named, *(event.agent for event in events)]))
    last = max((event.tick for event in events), default=0)
    return cells, agents, list(range(1, last + 1))


def _label(event: Event | None) -> str:
    if event is None:
        return "·"
    if event.kind == "fault":
        return f"!{event.error}"
    label = _LABELS.get(event.kind, event.name or event.kind)
    return f"{label}?" if event.error else label


def _row(name: str, cells: Sequence[str] | map, name_width: int, widths: Sequence[int]) -> str:  # type: ignore[type-arg]
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"{name.ljust(name_width)}  {'  '.join(padded)}".rstrip()


def _title(events: Sequence[Event]) -> str:
    first = events[0].detail
    return f"{first.get('task', '')}: {first.get('question', '')}"


def _line(event: Event, limit: int = _WIDTH) -> str:
    """Return one event in a line; nothing for those that only join others."""
    notes = []
    if event.detail.get("conflicts"):
        both = ", ".join(f"{a} and {b}" for a, b in event.detail["conflicts"])
        notes.append(f"reports {both} contradict each other")
    if event.detail.get("missing"):
        notes.append(f"no report of {', '.join(event.detail['missing'])}")
    if event.kind == "stop":
        notes.append(str(event.detail.get("why", "")))
    if event.kind not in ACTS and not notes:
        return ""
    said = event.text
    if event.kind == "assign":
        pairs = zip(event.to, event.text.split("\n"), strict=False)
        said = " | ".join(f"{agent}: {question}" for agent, question in pairs)
    text = cut_text(" ".join(said.split()), limit)
    parts = [text, *notes, f"({event.error})" if event.error else ""]
    shown = "; ".join(part for part in parts if part)
    head = f"{event.id:>3} t{event.tick} {event.agent} {event.name or event.kind}"
    return f"{head}: {shown}" if shown else head


def _summary(events: Sequence[Event]) -> str:
    found = measure(events)
    return (
        f"{found.turns} turns in {found.ticks} ticks, speed-up {found.speed_up:.2f}, "
        f"parallel efficiency {found.parallel_efficiency:.2f}, {found.messages} messages, "
        f"{found.words} words, {found.conflicts} conflicts, {found.faults} faults"
    )
