"""Who is best: evaluation, statistics and reports."""

from .audit import LeakedDocument, audit
from .certify import certify
from .evaluate import EnvironmentChoice, Episode, Evaluation, Row, evaluate
from .report import write_report
from .statistics import Interval, bootstrap_mean
from .teams import TeamComparison, compare_teams

__all__ = [
    "EnvironmentChoice",
    "Episode",
    "Evaluation",
    "Interval",
    "LeakedDocument",
    "Row",
    "TeamComparison",
    "audit",
    "bootstrap_mean",
    "certify",
    "compare_teams",
    "evaluate",
    "write_report",
]
