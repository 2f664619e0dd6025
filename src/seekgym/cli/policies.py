"""Make the language-model policies that a command asks for."""

from typing import Any

from ..agents.llm.models import find_model
from ..agents.policy import Policy
from ..corpora.errors import ConfigurationError, raise_unknown
from ..envs.protocols import PROTOCOLS

__all__ = ["POLICIES", "make_policies"]

POLICIES = ("local", "chat", "sb3")


def make_policies(names: list[str], *, model: str | None, **options: Any) -> list[Policy]:
    """Return the policies among the names of agents.

    Args:
        names: What was asked for; names of agents are passed over.
        model: A path or name.
        options: ``base_url``, ``protocol``, ``concurrency``, ``temperature``,
            ``max_tokens``; None for none given.

    Raises:
        ConfigurationError: An option is missing, or is given without a policy that takes it.
    """
    given = {key: value for key, value in options.items() if value is not None}
    asked = [name for name in POLICIES if name in names]
    if not asked and (model is not None or given):
        option = "--model" if model is not None else f"--{next(iter(given)).replace('_', '-')}"
        also = ", or for --agent sb3" if model is not None else ""
        raise ConfigurationError(f"{option} is for --agent local or --agent chat{also}")
    return [_make(name, model, given) for name in asked]


def _make(name: str, model: str | None, options: dict[str, Any]) -> Policy:
    if model is None:
        raise ConfigurationError(f"--agent {name} needs --model")
    if name == "sb3":
        return _make_learned(model, options)
    from ..agents import llm  # torch and transformers: only when they are asked for

    options = dict(options)
    base_url, concurrency = options.pop("base_url", None), options.pop("concurrency", None)
    if name == "local":
        _check_local(model, options.get("protocol"))
        if "max_tokens" in options:
            options["max_new_tokens"] = options.pop("max_tokens")
        if concurrency is not None:
            options["batch_size"] = concurrency
        local: Policy = llm.LocalPolicy.from_pretrained(model, name=f"local {model}", **options)
        return local
    if base_url is None:
        raise ConfigurationError("--agent chat needs --base-url, such as http://127.0.0.1:8000/v1")
    if concurrency is not None:
        options["concurrency"] = concurrency
    chat: Policy = llm.ChatPolicy(base_url=base_url, model=model, **options)
    return chat


def _make_learned(path: str, options: dict[str, Any]) -> Policy:
    if options:
        option = f"--{next(iter(options)).replace('_', '-')}"
        raise ConfigurationError(f"{option} is for --agent local or --agent chat, not for sb3")
    from ..agents.training.playing import ChoosingPlayer  # torch: only when it is asked for
    from ..agents.training.sb3 import load_policy

    return ChoosingPlayer(load_policy(path), f"sb3 {path}")


def _check_local(model: str, protocol: str | None) -> None:
    """Refuse what cannot be, before seconds go by with importing torch."""
    if model != "tiny":
        find_model(model)
    if protocol is not None and protocol not in PROTOCOLS:
        raise_unknown("protocol", protocol, PROTOCOLS)
