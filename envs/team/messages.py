"""What the agents of a team read, in words."""

from collections.abc import Sequence

from .roles import Role
from .state import Sent

__all__ = ["answerer_text", "idle_text", "leader_text"]

_IDLE = {
    "leader": "The searchers are at work.",
    "searcher": "You have no assignment.",
    "answerer": "The leader has not handed over yet.",
}


def idle_text(role: Role) -> str:
    """Return what an agent reads that is not asked to act."""
    return _IDLE[role]


def leader_text(sent: Sequence[Sent], before: str = "") -> str:
    """Return reports as they are read: each under its searcher; a repeated one only once."""
    parts = [before] if before else []
    first: dict[str, str] = {}
    for report in sent:
        text = report.text or "(no report)"
        if report.text and report.text in first:
            text = f"(the same as {first[report.text]})"
        first.setdefault(report.text, report.agent)
        parts.append(f"[{report.agent}] {report.question}\n{text}")
    return "\n\n".join(parts)


def answerer_text(question: str, sent: Sequence[Sent]) -> str:
    """Return the question and every report."""
    reports = [report for report in sent if report.text]
    if not reports:
        return f"{question}\n\n(There are no reports.)"
    return leader_text(reports, question)
