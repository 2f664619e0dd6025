"""Supervised fine-tuning on demonstrations: read it top to bottom.

Each block of updates has a world of its own: the tutor plays its proofs through the tools, and the
model learns to write what the tutor wrote, given what the tutor read. The loss counts the tokens of
replies alone, since invented names in results cannot be guessed; only the first updates count every
token, so that a new model learns to copy at all. Single letters are shuffled in most episodes, so
that no name's ending is known by heart.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ...corpora.errors import ConfigurationError
from ...envs.rules import check_at_least, check_positive
from ..llm.loading import load_model, move_to
from ..llm.local import LocalPolicy
from ..llm.tiny import tiny_model
from ..rollouts.trajectory import Segment
from .batches import Rows, by_length, pad, score
from .demonstrations import Demonstrator, demonstrate
from .evaluation import Evaluation, evaluate
from .run import RunFolder, reading_checkpoint
from .worlds import Worlds

__all__ = ["SFT", "SFTSettings"]

_LETTERS = "bcdfghjklmnpqrstvwxz"


@dataclass(frozen=True)
class SFTSettings:
    """All that decides a run.

    Attributes:
        environment: The environment's id.
        arguments: What ``gym.make`` is given beside it.
        model: ``tiny`` for a new model, or one that ``LocalPolicy.from_pretrained`` takes.
        width: Of a new model's hidden states.
        layers: Of a new model.
        protocol: The text protocol.
        has_instructions: Whether the model reads the protocol's instructions.
        max_context: The longest context, in tokens.
        max_new_tokens: The longest reply, in tokens.
        minutes: When it ends, and by which the learning rate falls.
        steps: The number of updates at which it ends, if earlier.
        target: The held-out exact match at which it ends, if earlier: enough of a warm-up.
        demonstrations: Episodes of each world.
        batch_tokens: Tokens of one update, with padding.
        learning_rate: The highest.
        warmup_steps: Updates until it is reached.
        read_steps: First updates whose loss counts every token.
        shuffled: The share of episodes whose single letters are shuffled.
        weight_decay: Of AdamW.
        is_bfloat16: Whether matrices are multiplied in bfloat16.
        seed: Decides the weights, the worlds and every draw.
        evaluate_minutes: How long between two evaluations; each makes a checkpoint.
        evaluation_episodes: Episodes of each.
    """

    environment: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    model: str = "tiny"
    width: int = 128
    layers: int = 3
    protocol: str = "search-r1"
    has_instructions: bool = False
    max_context: int = 1024
    max_new_tokens: int = 48
    minutes: float = 30.0
    steps: int | None = None
    target: float | None = None
    demonstrations: int = 256
    batch_tokens: int = 1024
    learning_rate: float = 4e-3
    warmup_steps: int = 50
    read_steps: int = 200
    shuffled: float = 0.7
    weight_decay: float = 0.01
    is_bfloat16: bool = False
    seed: int = 0
    evaluate_minutes: float = 2.0
    evaluation_episodes: int = 200

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("demonstrations", "batch_tokens", "warmup_steps", "evaluation_episodes"):
            check_at_least(name, getattr(self, name), 1)
        for name in ("minutes", "learning_rate", "evaluate_minutes"):
            check_positive(name, getattr(self, name))
        if self.steps is not None:
            check_at_least("steps", self.steps, 1)
        if self.target is not None:
            check_positive("target", self.target)
        if not 0 <= self.shuffled <= 1:
            raise ConfigurationError(f"shuffled must be from 0 to 1, got {self.shuffled!r}")

    @property
    def record(self) -> dict[str, Any]:
        """The settings as a run's config holds them."""
        return {"method": "sft", **asdict(self)}


class SFT:
    """One run.

    Args:
        settings: See ``SFTSettings``.
        folder: Where the run is kept.
        device: Where the model runs; a GPU if there is one.
    """

    def __init__(
        self, settings: SFTSettings, folder: RunFolder, *, device: str | None = None
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.worlds = Worlds(settings.environment, settings.arguments, seed=settings.seed)
        saved = folder.resume_point()
        name = settings.model if saved is None else str(saved[1] / "model")
        self.model, self.tokenizer = _load(name, settings, device)
        self.model.train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=settings.weight_decay,
        )
        self._letters = _single_letters(self.tokenizer)
        self.step, self._block, self._place, self._seconds = 0, 0, 0, 0.0
        self._tokens, self._evaluated, self._reported = 0, 0.0, -1
        if saved is not None:
            self._resume(saved[1])

    def train(self, on_log: Callable[[dict[str, Any]], None] = lambda record: None) -> Evaluation:
        """Update until the time or the steps are over, then evaluate; give each line of the log."""
        settings, begun = self.settings, time.monotonic() - self._seconds
        recent: list[dict[str, float]] = []
        while True:
            batches = self._demonstrations(self._block)
            while self._place < len(batches):
                self._seconds = time.monotonic() - begun
                if self._is_over():
                    return self._report(recent, on_log)
                if self._seconds - self._evaluated >= 60 * settings.evaluate_minutes:
                    found = self._report(recent, on_log)
                    if settings.target is not None and found.exact_match >= settings.target:
                        return found
                    recent = []
                recent.append(self._update(batches[self._place]))
                self._place += 1
                if len(recent) % 20 == 0:
                    on_log(self._figures(recent[-20:]))
            self._block, self._place = self._block + 1, 0

    def policy(self, *, temperature: float = 1.0) -> LocalPolicy:
        """Return the model as a policy."""
        settings = self.settings
        return LocalPolicy(
            self.model,
            self.tokenizer,
            name=f"sft {self.folder.path.name}",
            protocol=settings.protocol,
            max_context=settings.max_context,
            max_new_tokens=settings.max_new_tokens,
            temperature=temperature,
            batch_size=64,
            has_instructions=settings.has_instructions,
        )

    def _demonstrations(self, block: int) -> list[list[Segment]]:
        """Return the batches of a block, the same ones each time."""
        settings = self.settings
        generator = np.random.default_rng(np.random.SeedSequence([settings.seed, 2, block]))
        demonstrator = Demonstrator(
            self.tokenizer,
            protocol=settings.protocol,
            max_context=settings.max_context,
            max_new_tokens=settings.max_new_tokens,
            has_instructions=settings.has_instructions,
        )
        played = demonstrate(
            demonstrator,
            self.worlds.training(block),
            episodes=settings.demonstrations,
            seed=int(generator.integers(2**31)),
        )
        if not played:
            raise ConfigurationError(
                f"{settings.environment}: no demonstration was right and used only what it had "
                "seen; the tutor needs tasks with proofs, such as those of seekgym/Phantom-50-v0"
            )
        segments = [self._shuffle(s, generator) for t in played for s in t.segments]
        lengths = [len(segment.ids) for segment in segments]
        batches = by_length(lengths, settings.batch_tokens, generator)
        return [[segments[place] for place in batch] for batch in batches]

    def _shuffle(self, segment: Segment, generator: np.random.Generator) -> Segment:
        """Let each single letter stand for another one, the same all over the episode."""
        if generator.random() >= self.settings.shuffled or self.settings.model != "tiny":
            return segment
        table = np.arange(len(self.tokenizer))
        table[self._letters] = generator.permutation(self._letters)
        return Segment(tuple(table[list(segment.ids)].tolist()), segment.mask, segment.log_probs)

    def _update(self, segments: list[Segment]) -> dict[str, float]:
        settings = self.settings
        rate = settings.learning_rate * self._share_of_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        rows = pad(segments, self.model.device)
        asked = rows.present if self.step < settings.read_steps else rows.drawn
        with torch.autocast(self.model.device.type, torch.bfloat16, enabled=settings.is_bfloat16):
            scores = score(self.model, rows, asked)
        loss = -scores.log_probs.sum() / _count(rows, asked)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        self._tokens += rows.ids.numel()
        return {
            "loss": loss.item(),
            "accuracy": scores.accuracy,
            "entropy": float(scores.entropy),
            "gradient_norm": float(norm),
            "learning_rate": rate,
        }

    def _share_of_rate(self) -> float:
        """Return which share of the highest learning rate holds: a ramp, then half a cosine."""
        ramp = min(1.0, (self.step + 1) / self.settings.warmup_steps)
        return ramp * (0.1 + 0.45 * (1 + math.cos(math.pi * self._done())))

    def _done(self) -> float:
        """Return how much of the run is over, from 0 to 1; of steps, if they are given."""
        if self.settings.steps is not None:
            return min(1.0, self.step / self.settings.steps)
        return min(1.0, self._seconds / (60 * self.settings.minutes))

    def _is_over(self) -> bool:
        is_late = self._seconds >= 60 * self.settings.minutes
        return is_late or (self.settings.steps is not None and self.step >= self.settings.steps)

    def _figures(self, recent: list[dict[str, float]]) -> dict[str, Any]:
        names = recent[0] if recent else {}
        means = {name: float(np.mean([figures[name] for figures in recent])) for name in names}
        return {"step": self.step, "seconds": self._seconds, "tokens": self._tokens} | means

    def _report(
        self, recent: list[dict[str, float]], on_log: Callable[[dict[str, Any]], None]
    ) -> Evaluation:
        """Evaluate, log, and make a checkpoint."""
        settings = self.settings
        self._evaluated = self._seconds
        found = evaluate(
            self.policy(temperature=0.0),
            self.worlds.held_out(),
            episodes=settings.evaluation_episodes,
            seed=settings.seed,
        )
        record = self._figures(recent) | found.record
        if self._reported != self.step:  # else a run that was over is looked at again
            self.folder.log(record)
            self.folder.save(self.step, self._write)
            self._reported = self.step
        on_log(record)
        return found

    def _write(self, path: Path) -> None:
        self.policy().save(path / "model")
        torch.save(
            {
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
                "block": self._block,
                "place": self._place,
                "seconds": self._seconds,
                "tokens": self._tokens,
                "evaluated": self._evaluated,
            },
            path / "state.pt",
        )

    def _resume(self, path: Path) -> None:
        with reading_checkpoint(path):
            state = torch.load(path / "state.pt", map_location="cpu", weights_only=True)
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self._block, self._place = state["step"], state["block"], state["place"]
            self._seconds, self._tokens = state["seconds"], state["tokens"]
            self._evaluated, self._reported = state["evaluated"], state["step"]


def _load(
    name: str, settings: SFTSettings, device: str | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if name != "tiny":
        return load_model(name, dtype="float32", device=device)
    model, tokenizer = tiny_model(width=settings.width, layers=settings.layers, seed=settings.seed)
    move_to(model, device)
    return model, tokenizer


def _single_letters(tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Return the ids of the tokens that are one consonant each."""
    ids = [tokenizer.convert_tokens_to_ids(letter) for letter in _LETTERS]
    return np.array(sorted(i for i in ids if isinstance(i, int) and i >= 0), dtype=np.int64)


def _count(rows: Rows, asked: torch.Tensor) -> torch.Tensor:
    return (asked[:, 1:] & rows.present[:, 1:]).sum().clamp(min=1)
