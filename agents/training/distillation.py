"""On-policy distillation: a teacher says, in the policy's own states, what it should have said.

The policy plays, so that it learns what to do after its own mistakes, and the teacher is one that
knows. ``"tutor"`` reads a task's proof and says its reply, token by token (``teaching``). A model
says how likely it finds each token (GKD, Agarwal et al. 2024, arXiv:2306.13649). The loss of a step
is ``w distillation + (1 - w) reinforcement``, and ``w`` changes over the run.

- GKD, section 3: students learn on what they drew themselves, by a divergence of choice, and
  nothing flows through the drawing; mixed with reinforcement by a weight that stays as it is.
- ATOD (arXiv:2606.27814) goes from distillation to reinforcement over the run. Known from its
  abstract; that ``w`` falls linearly or as a cosine is our reading. Its weights by disagreement
  and uncertainty (T-DUR) are not built; ``choice="differing"`` is a hard form of the first.
- TurnOPD (arXiv:2607.05804) has a budget of turns, since late turns of long episodes teach little
  and cost time. Known from its abstract; it cuts rollouts by statistics of probes and goes from
  token means to turn means. Ours cuts what is distilled, not what is played, by a fixed number.
- MultiAgent-OPD, known from its abstract, distils a frozen teacher that was trained in a
  simpler setting into searchers' tokens: a model's folder as ``teacher`` does so for one agent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ...corpora.errors import ConfigurationError, raise_unknown
from ...envs.rules import check_at_least
from ...envs.wrappers import TextProtocol
from ..llm.loading import load_model
from ..llm.local import LocalPolicy
from ..rollouts.pool import EnvironmentPool
from ..rollouts.trajectory import Trajectory
from .batches import logits_of, pad
from .divergences import DIVERGENCES, drawn_losses
from .teaching import advise, lesson
from .tokens import Episode, prepare
from .worlds import World

__all__ = ["Distillation", "Distiller", "check_same_tokens", "chosen", "restrict"]

_TUTOR = "tutor"
_DRAWN = "drawn"


@dataclass(frozen=True)
class Distillation:
    """How a teacher takes part in a run.

    Attributes:
        teacher: ``tutor``, for tasks with proofs, or a model's folder.
        weight: ``w`` at the beginning, from 0 to 1; the reinforcement has what is left.
        weight_end: ``w`` at the end.
        schedule: How it gets there: ``linear`` or ``cosine``.
        turns: Distil so many turns of an episode at most; None for no limit.
        choice: Which ones: the ``first``, or the most ``differing``. From the tutor those are the
            first whose reply is not the tutor's own; from a model those of the largest divergence.
        divergence: From a model: ``reverse``, ``forward`` or ``jensen-shannon`` over the whole
            vocabulary, or ``drawn``: a policy gradient on the drawn tokens alone.
    """

    teacher: str = _TUTOR
    weight: float = 0.5
    weight_end: float = 0.0
    schedule: Literal["linear", "cosine"] = "linear"
    turns: int | None = None
    choice: Literal["first", "differing"] = "first"
    divergence: str = "reverse"

    def __post_init__(self) -> None:
        """Check names and numbers."""
        for name in ("weight", "weight_end"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigurationError(
                    f"{name} of distillation must be from 0 to 1, got {getattr(self, name)!r}"
                )
        if self.turns is not None:
            check_at_least("turns", self.turns, 1)
        for name, known in (
            ("schedule", ("linear", "cosine")),
            ("choice", ("first", "differing")),
            ("divergence", (_DRAWN, *DIVERGENCES)),
        ):
            if getattr(self, name) not in known:
                raise_unknown(name, getattr(self, name), known)

    def weight_at(self, done: float) -> float:
        """Return ``w`` when so much of the run is over, from 0 to 1."""
        share = done if self.schedule == "linear" else (1 - math.cos(math.pi * done)) / 2
        return self.weight + (self.weight_end - self.weight) * share


class Distiller:
    """A teacher, and how a policy learns from it.

    Args:
        settings: See ``Distillation``.
        policy: Who learns: its tokens, its protocol, its temperature.

    Raises:
        ConfigurationError: The teacher is no model, or has other tokens than the policy.
    """

    def __init__(self, settings: Distillation, policy: LocalPolicy) -> None:
        self.settings = settings
        self._policy = policy
        self._teacher: PreTrainedModel | None = None
        if settings.teacher != _TUTOR:
            device = str(policy.model.device)
            teacher, tokenizer = load_model(settings.teacher, dtype="float32", device=device)
            check_same_tokens(policy.tokenizer, tokenizer, settings.teacher)
            self._teacher = teacher.eval().requires_grad_(False)

    def lessons(self, played: Sequence[Trajectory], world: World) -> list[Episode]:
        """Return what is distilled from the episodes of a step, in their order.

        Args:
            played: What the policy played.
            world: Where.
        """
        settings = self.settings
        if self._teacher is None:
            taught = self._from_tutor(played, world)
        else:
            taught = prepare(played, [np.zeros(len(t.turns)) for t in played])
            if settings.turns is not None:
                taught = [restrict(each, self._turns(each)) for each in taught]
        return [episode for episode in taught if episode.drawn]

    def learn(
        self, lessons: Sequence[Episode], model: PreTrainedModel, *, weight: float, tokens: int
    ) -> float:
        """Add the gradient of the distillation to the model's; return the loss, unweighted.

        Args:
            lessons: What ``lessons`` gave, or a part of it.
            model: The model that learns.
            weight: What the gradient is multiplied by.
            tokens: How many tokens are read at once, padding included.
        """
        drawn, total = sum(lesson.drawn for lesson in lessons), 0.0
        for part in Episode.parts(lessons, tokens):
            loss = self.losses(part, model).sum() / max(1, drawn)
            (weight * loss).backward()
            total += loss.item()
        return total

    def losses(self, lessons: Sequence[Episode], model: PreTrainedModel) -> Tensor:
        """Return the loss of each token that counts, row by row, (tokens,)."""
        segments = [segment for lesson in lessons for segment in lesson.segments]
        rows = pad(segments, model.device)
        targets = rows.drawn[:, 1:] & rows.present[:, 1:]
        student = logits_of(model, rows, targets).float() / self._policy.sampler.scale
        tokens = rows.ids[:, 1:][targets][:, None]
        log_probs = student.log_softmax(dim=-1).gather(-1, tokens)[:, 0]
        if self._teacher is None:
            return -log_probs
        with torch.no_grad():
            teacher = logits_of(self._teacher, rows, targets).float() / self._policy.sampler.scale
        width = min(student.shape[-1], teacher.shape[-1])  # beyond it are rows that pad a matrix
        student, teacher = student[:, :width], teacher[:, :width]
        if self.settings.divergence != _DRAWN:
            return DIVERGENCES[self.settings.divergence](student, teacher)
        old = np.concatenate(
            [np.array(s.log_probs)[1:][np.array(s.mask[1:]) > 0] for s in segments]
        )
        old_log_probs = torch.from_numpy(old).to(log_probs)
        known = teacher.log_softmax(dim=-1).gather(-1, tokens)[:, 0]
        return drawn_losses(log_probs, known, old_log_probs)

    def _from_tutor(self, played: Sequence[Trajectory], world: World) -> list[Episode]:
        settings = self.settings
        pool = EnvironmentPool(world.environment, world.arguments, protocol=self._policy.protocol)
        env, taught = cast(TextProtocol, pool.take()), []
        layout, most = self._policy.layout, self._policy.limits.max_new_tokens
        for trajectory in played:
            replies = [
                reply if reply is not None and len(layout.plain(reply)) <= most else None
                for reply in advise(trajectory, env)
            ]
            differs = [
                float(reply is not None and reply != turn.action)
                for reply, turn in zip(replies, trajectory.turns, strict=True)
            ]
            kept = chosen([reply is not None for reply in replies], differs, settings)
            replies = [reply if n in kept else None for n, reply in enumerate(replies)]
            taught.append(lesson(trajectory, replies, layout))
        return taught

    def _turns(self, episode: Episode) -> frozenset[int]:
        """Return which turns of an episode are distilled from a model."""
        numbers = np.concatenate([turns[1:][turns[1:] >= 0] for turns in episode.turns])
        with torch.no_grad():
            losses = self.losses([episode], self._policy.model).cpu().numpy()
        count = int(numbers.max(initial=-1)) + 1
        means = [float(losses[numbers == n].mean()) if n in numbers else 0.0 for n in range(count)]
        return chosen([n in numbers for n in range(count)], means, self.settings)


def chosen(
    is_taught: Sequence[bool], divergences: Sequence[float], settings: Distillation
) -> frozenset[int]:
    """Return the numbers of the turns of an episode that are distilled, within the budget.

    Args:
        is_taught: For each turn whether the teacher has something to say.
        divergences: For each turn how far apart policy and teacher are; 0 where they are not.
        settings: The budget and the rule.
    """
    places = [place for place, taught in enumerate(is_taught) if taught]
    if settings.choice == "differing":
        places = [place for place in places if divergences[place] != 0]
        places.sort(key=lambda place: (-divergences[place], place))
    return frozenset(places[: settings.turns])


def restrict(episode: Episode, turns: frozenset[int]) -> Episode:
    """Return an episode of which only the tokens of some turns count."""
    numbers = tuple(np.where(np.isin(each, list(turns)), each, -1) for each in episode.turns)
    segments = tuple(
        replace(segment, mask=tuple((each >= 0).astype(int).tolist()))
        for segment, each in zip(episode.segments, numbers, strict=True)
    )
    return replace(episode, segments=segments, turns=numbers)


def check_same_tokens(
    own: PreTrainedTokenizerBase, other: PreTrainedTokenizerBase, teacher: str
) -> None:
    """Raise a ConfigurationError if an id is not the same token to policy and teacher."""
    mine, others = own.get_vocab(), other.get_vocab()
    if mine == others:
        return
    differing = sorted(token for token in mine if others.get(token) != mine[token])
    raise ConfigurationError(
        f"teacher {teacher!r} has {len(others)} tokens, the policy {len(mine)}, and "
        f"{len(differing)} of the policy's are other ids to the teacher, such as "
        f"{differing[:3]!r:.80}; use a teacher with the policy's tokenizer, or teacher='tutor'"
    )
