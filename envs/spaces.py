"""The two spaces of every search environment: free text out, tool calls in.

Both are plain subclasses of ``gymnasium.Space``. ``spaces.Text`` would not do: it has a fixed
character set, and AsyncVectorEnv with its default shared memory returns constant text for it. A
plain subclass works with ``shared_memory=False`` and fails loudly with shared memory.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Space

from .actions import Parameter, ToolCall, ToolSignature, check_arguments

__all__ = ["FreeText", "ToolCalls"]

_WORDS = ("who", "where", "first", "city", "film", "river", "born", "year", "music", "team")
_MAX_SAMPLE_WORDS = 5


class FreeText(Space[str]):
    """Any text of at most ``max_chars`` characters.

    Args:
        max_chars: The longest text that belongs to the space.
        seed: Seeds ``sample()``, which gives a few common words.

    Example:
        >>> FreeText(100, seed=0).contains("Ōsaka 🚆")
        True
    """

    def __init__(self, max_chars: int, *, seed: int | np.random.Generator | None = None) -> None:
        self.max_chars = max_chars
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed shape, so it cannot be flattened to an array."""
        return False

    def contains(self, x: Any) -> bool:
        """Tell whether x is a text that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_chars

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a few common words; masks are ignored."""
        return _sample_words(self.np_random)[: self.max_chars]

    def __repr__(self) -> str:
        """Show the limit."""
        return f"FreeText({self.max_chars})"

    def __eq__(self, other: object) -> bool:
        """Tell whether the other space holds the same texts."""
        return isinstance(other, FreeText) and other.max_chars == self.max_chars


class ToolCalls(Space[ToolCall]):
    """Well-made calls of some tools: right name, known arguments of the right type.

    An environment also takes anything else as an action: a call outside this space is a move
    in the game that costs a turn.

    Args:
        tools: The tools that may be called.
        seed: Seeds ``sample()``, which gives short, plausible calls.
    """

    def __init__(
        self, tools: Sequence[ToolSignature], *, seed: int | np.random.Generator | None = None
    ) -> None:
        self.tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in self.tools}
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Calls have no fixed shape, so they cannot be flattened to an array."""
        return False

    def contains(self, x: Any) -> bool:
        """Tell whether x is a call that a tool takes as it is."""
        if not isinstance(x, Mapping) or not isinstance(x.get("arguments"), Mapping):
            return False
        name = x.get("name")
        tool = self._by_name.get(name) if isinstance(name, str) else None
        return tool is not None and check_arguments(tool, x["arguments"]) is None

    def sample(self, mask: Any = None, probability: Any = None) -> ToolCall:
        """Return a plausible call of a tool drawn at random; masks are ignored."""
        tool = self.tools[int(self.np_random.integers(len(self.tools)))]
        required = [parameter for parameter in tool.parameters if parameter.is_required]
        chosen = required or tool.parameters
        arguments = {parameter.name: self._sample_argument(parameter) for parameter in chosen}
        return {"name": tool.name, "arguments": arguments}

    def _sample_argument(self, parameter: Parameter) -> str | int:
        if parameter.type == "integer":
            return int(self.np_random.integers(1, 4))
        if parameter.examples:
            return parameter.examples[int(self.np_random.integers(len(parameter.examples)))]
        return _sample_words(self.np_random)

    def __repr__(self) -> str:
        """Show the tools."""
        return f"ToolCalls({', '.join(tool.name for tool in self.tools)})"

    def __eq__(self, other: object) -> bool:
        """Tell whether the other space holds the same calls."""
        return isinstance(other, ToolCalls) and other.tools == self.tools


def _sample_words(generator: np.random.Generator) -> str:
    count = int(generator.integers(1, _MAX_SAMPLE_WORDS + 1))
    return " ".join(_WORDS[int(index)] for index in generator.integers(len(_WORDS), size=count))
