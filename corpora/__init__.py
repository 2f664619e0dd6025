"""What there is to find: documents, tasks and retrieval. Knows nothing of gymnasium or torch."""

from .documents import Corpus, Document
from .errors import (
    BackendError,
    CommandError,
    ConfigurationError,
    CorpusError,
    MissingExtraError,
    PageError,
    ScoringError,
    SeekgymError,
)
from .retrieval import BM25Retriever, Hit, Retriever
from .shipped import load_corpus, load_tasks, shipped_names
from .site import Link, Page, Result, Site
from .tasks import ProofStep, Task, TaskSet

__all__ = [
    "BM25Retriever",
    "BackendError",
    "CommandError",
    "ConfigurationError",
    "Corpus",
    "CorpusError",
    "Document",
    "Hit",
    "Link",
    "MissingExtraError",
    "Page",
    "PageError",
    "ProofStep",
    "Result",
    "Retriever",
    "ScoringError",
    "SeekgymError",
    "Site",
    "Task",
    "TaskSet",
    "load_corpus",
    "load_tasks",
    "shipped_names",
]
