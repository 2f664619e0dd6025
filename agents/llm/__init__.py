"""Language models as policies; what they need is imported when they are first asked for."""

import importlib
from typing import TYPE_CHECKING, Any

from ...corpora.errors import MissingExtraError

if TYPE_CHECKING:
    from .chat import ChatPolicy
    from .local import LocalPolicy

__all__ = ["ChatPolicy", "LocalPolicy"]

_MODULES = {"ChatPolicy": ".chat", "LocalPolicy": ".local"}
_NEEDED = ("torch", "transformers", "tokenizers", "openai", "httpx")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULES[name], __name__)
    except ModuleNotFoundError as error:
        if error.name in _NEEDED:
            raise MissingExtraError(error.name, "llm") from error
        raise
    return getattr(module, name)
