"""What a team searches: a search environment, made from a short text or given."""

import ast
from copy import deepcopy
from typing import Any

import gymnasium as gym

from ...corpora.errors import ConfigurationError, raise_unknown
from ..base import SearchEnv
from ..knowledge_graph import KnowledgeGraphEnv
from ..phantom import PhantomEnv
from ..qa import QAEnv

__all__ = ["World", "open_world"]

World = str | SearchEnv

_KINDS: dict[str, type[SearchEnv]] = {
    "phantom": PhantomEnv,
    "knowledge": KnowledgeGraphEnv,
    "qa": QAEnv,
}


def open_world(world: World, **arguments: Any) -> SearchEnv:
    """Return the search environment whose corpus, tasks, tools and retriever a team uses.

    Args:
        world: A kind and its arguments, as in ``"phantom:people=5000,world_seed=7"``,
            ``"knowledge:entities=600"`` or ``"qa:hotpotqa-100"``; the id of a registered search
            environment; or a search environment, of which a copy is used.
        **arguments: Others of its arguments, such as ``split="test"``; none for a search
            environment, which has its own.

    Raises:
        ConfigurationError: There is no such kind, or its arguments cannot be used.

    Example:
        >>> open_world("qa:hotpotqa-100").corpus
        <Corpus 'corpus.jsonl': 994 documents>
    """
    if isinstance(world, gym.Env):
        inner = world.unwrapped
        if isinstance(inner, SearchEnv) and arguments:
            raise ConfigurationError(
                f"{', '.join(arguments)}: the world is made; make it with these arguments"
            )
        if isinstance(inner, SearchEnv):
            return deepcopy(inner)
    if not isinstance(world, str):
        raise ConfigurationError(
            f"world must be a text or a search environment, got {type(world).__name__}; "
            'for example world="phantom:people=5000,world_seed=7"'
        )
    if world in gym.registry:
        return open_world(gym.make(world, **arguments).unwrapped)  # type: ignore[arg-type]
    kind, _, text = world.partition(":")
    if kind not in _KINDS:
        raise_unknown("world", world, [*_KINDS, *(i for i in gym.registry if "seekgym/" in i)])
    positional, named = _arguments(world, text)
    try:
        return _KINDS[kind](*positional, **{**named, **arguments})
    except TypeError as error:
        raise ConfigurationError(f"world {world!r}: {error}") from None


def _arguments(world: str, text: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments that a text holds, written as in Python; bare words are texts."""
    if text and "=" not in text:
        return [text], {}
    try:
        call = ast.parse(f"_({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("give arguments by name")
        return [], {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(
            f"world {world!r}: its arguments cannot be read ({error}); "
            "write them as in phantom:people=5000,hops=(1, 4)"
        ) from None


def _value(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
