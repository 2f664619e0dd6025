"""Retrievers: rank the documents of a corpus for a query."""

from .analysis import Analyzer, detect_language
from .base import Hit, Retriever
from .bm25 import BM25Retriever, default_retriever
from .fielded import Clause, FieldedQuery, FieldedRetriever, fielded_retriever

__all__ = [
    "Analyzer",
    "BM25Retriever",
    "Clause",
    "FieldedQuery",
    "FieldedRetriever",
    "Hit",
    "Retriever",
    "default_retriever",
    "detect_language",
    "fielded_retriever",
]
