"""Who is best: evaluation, statistics and reports."""

from .certify import certify
from .evaluate import EnvironmentChoice, Episode, Evaluation, Row, evaluate
from .report import write_report
from .statistics import Interval, bootstrap_mean

__all__ = [
    "EnvironmentChoice",
    "Episode",
    "Evaluation",
    "Interval",
    "Row",
    "bootstrap_mean",
    "certify",
    "evaluate",
    "write_report",
]
