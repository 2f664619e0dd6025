"""Knowledge worlds: a schema, a graph that keeps to it, and articles that agree with it."""

from .articles import KnowledgeCorpus
from .drawing import DrawReport, KnowledgeTasks
from .graph import WorldSettings
from .proofs import Difficulty
from .questions import QuestionSettings
from .reader import Reader, Triple
from .schema import Schema, encyclopedia, load_schema
from .shortcuts import SHORTCUTS, one_query_table
from .solver import solve
from .world import KnowledgeWorld

__all__ = [
    "SHORTCUTS",
    "Difficulty",
    "DrawReport",
    "KnowledgeCorpus",
    "KnowledgeTasks",
    "KnowledgeWorld",
    "QuestionSettings",
    "Reader",
    "Schema",
    "Triple",
    "WorldSettings",
    "encyclopedia",
    "load_schema",
    "one_query_table",
    "solve",
]
