"""Wrappers: other views of the same game. One wrapper, one file."""

from .protocol import TextProtocol

__all__ = ["TextProtocol"]
