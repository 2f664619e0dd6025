"""Retrievers: rank the documents of a corpus for a query."""

from .analysis import Analyzer, detect_language
from .base import Hit, Retriever
from .bm25 import BM25Retriever, default_retriever

__all__ = ["Analyzer", "BM25Retriever", "Hit", "Retriever", "default_retriever", "detect_language"]
