"""Phantom worlds: fictional universes of any size, every question proved."""

from ..certificates import certify, find_leaks, leak_table
from .articles import PhantomCorpus
from .checks import is_definite
from .grammar import QuestionSettings
from .people import WorldSettings
from .world import PhantomWorld

__all__ = [
    "PhantomCorpus",
    "PhantomWorld",
    "QuestionSettings",
    "WorldSettings",
    "certify",
    "find_leaks",
    "is_definite",
    "leak_table",
]
