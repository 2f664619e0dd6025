"""Wrappers: other views of the same game. One wrapper, one file."""

from .curriculum import Curriculum
from .protocol import TextProtocol

__all__ = ["Curriculum", "TextProtocol"]
