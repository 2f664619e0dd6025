"""Knowledge worlds: a schema, a graph that keeps to it, and articles that agree with it.

The way of a world, file by file: ``schema`` says what may be true and how it is said; ``graph``
(with ``sampling``, ``edges`` and ``names``) draws what is true; ``articles`` writes it down and
``reader`` reads it back. ``questions`` draws what is asked, in the ``terms`` that ``proofs`` turns
into tasks; ``shortcuts`` turns some away; ``drawing`` brings these together, and ``solver`` gives a
second opinion. ``triples`` brings in real graphs. ``world`` is the door to all of it.
"""

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
