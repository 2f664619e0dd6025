"""Load a language model onto a device, and tell one set of weights from another."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ...corpora.errors import ConfigurationError
from .models import find_model
from .tiny import tiny_model

__all__ = [
    "check_vocabulary",
    "load_model",
    "move_to",
    "save_options",
    "saved_options",
    "weights_fingerprint",
]

_OPTIONS = "policy.json"  # beside the weights: how the model was trained to play


def load_model(
    name: str, *, dtype: str, device: str | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a model and its tokenizer.

    Args:
        name: As ``LocalPolicy.from_pretrained`` takes it.
        dtype: The type of its weights; ``auto`` leaves them as they are.
        device: Where it runs; a GPU if there is one and None is given.

    Raises:
        ConfigurationError: There is no such model, type or device.
    """
    kind = getattr(torch, dtype, None)
    if dtype != "auto" and not isinstance(kind, torch.dtype):
        raise ConfigurationError(f"dtype must be auto, float32 or bfloat16 or so, got {dtype!r}")
    model, tokenizer = tiny_model() if name == "tiny" else _pretrained(name, dtype)
    if isinstance(kind, torch.dtype):
        torch.nn.Module.to(model, kind)
    move_to(model, device)
    return model, tokenizer


def move_to(model: PreTrainedModel, device: str | None) -> None:
    """Move a model; to a GPU if there is one and no device is given.

    Raises:
        ConfigurationError: There is no such device.
    """
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.nn.Module.to(model, place)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigurationError(f"device {device!r} cannot be used: {reason}") from None


def check_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise a ConfigurationError if the tokenizer has ids that the model does not know."""
    known = int(model.config.get_text_config().vocab_size)
    if len(tokenizer) > known:
        raise ConfigurationError(
            f"the tokenizer has {len(tokenizer)} tokens, the model knows {known}; pass the "
            "model's own tokenizer, or call model.resize_token_embeddings"
        )


def save_options(path: str | os.PathLike[str], options: Mapping[str, Any]) -> None:
    """Write a policy's options into the folder of its model."""
    text = json.dumps(dict(options), indent=2) + "\n"
    (Path(path) / _OPTIONS).write_text(text, encoding="utf-8")


def saved_options(name: str) -> dict[str, Any]:
    """Return the options that lie beside a model; none if there are none.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    if name == "tiny":
        return {}
    path = Path(find_model(name).path) / _OPTIONS
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{path}: no options of a policy ({error})") from None


def weights_fingerprint(model: PreTrainedModel) -> str:
    """Return a short text that changes when the weights do: from sums over each of them."""
    digest = hashlib.sha256()
    with torch.inference_mode():
        for name, values in model.state_dict().items():
            sums = (values.double().sum(), values.double().square().sum())
            digest.update(f"{name} {tuple(values.shape)} {[float(s) for s in sums]}".encode())
    return digest.hexdigest()[:16]


def _pretrained(name: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    source = find_model(name)
    place = Path(source.path)
    if source.gguf_file is None and place.is_dir() and not (place / "config.json").is_file():
        raise ConfigurationError(
            f"model {name!r} is a folder without config.json; pass the folder of a model of "
            "transformers, or of a run of train sft or grpo"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.path, **source.arguments)
        model = AutoModelForCausalLM.from_pretrained(source.path, dtype=dtype, **source.arguments)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigurationError(f"model {name!r} cannot be loaded: {reason}") from error
    return model, tokenizer
