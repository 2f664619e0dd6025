"""The curves of a training run: small multiples, as a picture and as a page."""

import html
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...corpora.errors import MissingExtraError

__all__ = ["draw_curves"]

_COLUMNS = 3
_MAX_POINTS = 400  # of one curve; of a longer one, points at even distances
_WIDTH, _HEIGHT, _MARGIN = 300, 150, 6  # of a panel of the page, in its own units
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --faint: #d5d8dc; --line: #2463b4 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e9; --paper: #17191c; --faint: #3a3e44; --line: #7db2f5 } }
body { background: var(--paper); color: var(--ink); font: 15px/1.4 system-ui, sans-serif;
  margin: 2rem auto; max-width: 1040px; padding: 0 1rem }
main { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fill, minmax(280px, 1fr)) }
figure { margin: 0 } figcaption { font-weight: 600 } small { opacity: .75; font-weight: 400 }
svg { display: block; width: 100%; border: 1px solid var(--faint) }
polyline { fill: none; stroke: var(--line); stroke-width: 1.6; vector-effect: non-scaling-stroke }
circle { fill: var(--line) }
"""


class _Curve(NamedTuple):
    """The values of one field, over steps."""

    name: str
    steps: tuple[float, ...]
    values: tuple[float, ...]


def draw_curves(
    records: Sequence[Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    fields: Sequence[str] | None = None,
) -> None:
    """Write ``curves.png`` and ``curves.html`` into a folder, equal for equal records.

    Args:
        records: Lines of a log; each has its ``step``, and ``seconds`` if the caption is to say
            how long it took.
        path: The folder.
        fields: What to draw; every field with numbers, if None.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "train") from None
    curves = _curves(records, fields)
    caption = _caption(records)
    folder = Path(path)
    rows = max(1, math.ceil(len(curves) / _COLUMNS))
    figure = Figure(figsize=(4 * _COLUMNS, 2.4 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(caption, fontsize=10)
    for place, curve in enumerate(curves, start=1):
        axes = figure.add_subplot(rows, _COLUMNS, place)
        axes.plot(curve.steps, curve.values, marker="." if len(curve.steps) < 30 else None)
        axes.set_title(curve.name, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
    picture = folder / ".curves.png"
    figure.savefig(picture, format="png", dpi=100)
    os.replace(picture, folder / "curves.png")
    page = folder / ".curves.html"
    page.write_text(_page(curves, caption), encoding="utf-8")
    os.replace(page, folder / "curves.html")


def _curves(records: Sequence[Mapping[str, Any]], fields: Sequence[str] | None) -> list[_Curve]:
    names = dict.fromkeys(name for record in records for name in record)
    wanted = [name for name in names if name not in ("step", "seconds")]
    curves = []
    for name in wanted if fields is None else fields:
        points = [
            (float(record["step"]), float(record[name]))
            for record in records
            if _is_number(record.get(name))
        ]
        if points:
            kept = points[:: math.ceil(len(points) / _MAX_POINTS)]
            if kept[-1] != points[-1]:
                kept.append(points[-1])
            curves.append(_Curve(name, *zip(*kept, strict=True)))
    return curves


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _caption(records: Sequence[Mapping[str, Any]]) -> str:
    if not records:
        return "Nothing is logged yet."
    steps = max(int(record["step"]) for record in records)
    seconds = [float(r["seconds"]) for r in records if _is_number(r.get("seconds"))]
    took = f" in {max(seconds):,.0f} seconds" if seconds else ""
    return f"{steps:,} steps{took}; each curve over steps"


def _page(curves: Sequence[_Curve], caption: str) -> str:
    panels = "\n".join(_panel(curve) for curve in curves)
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Training curves</title><style>{_STYLE}</style>\n"
        f"<h1>Training curves</h1>\n<p>{html.escape(caption)}</p>\n"
        f"<main>\n{panels}\n</main></html>\n"
    )


def _panel(curve: _Curve) -> str:
    low, high = min(curve.values), max(curve.values)
    first, last = min(curve.steps), max(curve.steps)
    points = [
        (
            _MARGIN + (_WIDTH - 2 * _MARGIN) * _share(step, first, last),
            _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * _share(value, low, high),
        )
        for step, value in zip(curve.steps, curve.values, strict=True)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    name = html.escape(curve.name)
    return (
        f"<figure><figcaption>{name} <small>{curve.values[-1]:.4g} at the end, "
        f"{low:.4g} to {high:.4g}, steps {first:,.0f} to {last:,.0f}</small></figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name} over steps">'
        f'<polyline points="{line}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3"/></svg></figure>'
    )


def _share(value: float, low: float, high: float) -> float:
    """Return how far a value is between two others; half, where they are equal."""
    return (value - low) / (high - low) if high > low else 0.5
