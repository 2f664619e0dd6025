"""Wrappers: other views of the same game. One wrapper, one file."""

from .curriculum import Curriculum
from .features import Features
from .menu import Menu
from .protocol import TextProtocol

__all__ = ["Curriculum", "Features", "Menu", "TextProtocol"]
