"""Phantom worlds: fictional universes of any size, every question proved."""

from .articles import PhantomCorpus
from .checks import certify, find_leaks, is_definite, leak_table
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
