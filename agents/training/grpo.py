"""Reinforcement learning of a language model from groups of episodes: read it top to bottom.

GRPO (Shao et al. 2024, arXiv:2402.03300) and its relatives. Each step plays some questions of a
training world, several episodes a question, tells how much better each episode or turn was than
its like (``advantages``), and makes what was better likelier (``objectives``). Only tokens that the
policy drew count, none that the environment wrote (Search-R1, arXiv:2503.09516).
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ...corpora.errors import ConfigurationError, raise_unknown
from ...envs.rules import check_at_least, check_positive
from ..llm.local import LocalPolicy
from ..rollouts.filter import Valid
from ..rollouts.generate import generate
from ..rollouts.trajectory import Trajectory
from ..rollouts.trees import TailShape, TreeShape, generate_tails, generate_trees
from .advantages import ESTIMATORS
from .comparison import uneven
from .distillation import Distillation, Distiller
from .evaluation import Evaluation, behaviour, evaluate
from .objectives import OBJECTIVES
from .regularisers import kl, llds
from .run import RunFolder, reading_checkpoint
from .token_batch import TokenBatch, aggregate
from .tokens import Episode, minibatches, prepare
from .worlds import World, Worlds

__all__ = ["GRPO", "GRPOSettings"]


@dataclass(frozen=True)
class GRPOSettings:
    """All that decides a run.

    Attributes:
        environment: The environment's id.
        model: What learns: the folder of an SFT run, or what ``LocalPolicy.from_pretrained`` takes.
        arguments: What ``gym.make`` is given beside the id.
        minutes: When it ends.
        steps: The number of steps at which it ends, if earlier.
        questions: Of each step.
        group_size: Episodes of each question; of trees and tails as many as fit, in threes and
            twos.
        rollout: ``groups``; ``trees`` or ``tails`` branch episodes, for the estimators of those.
        estimator: A name of ``ESTIMATORS``.
        objective: A name of ``OBJECTIVES``.
        average: ``token``, ``episode`` or ``constant``: see ``aggregate``.
        minibatches: Updates of each step.
        learning_rate: Of AdamW, after a ramp of ten steps; it falls to a tenth by the end.
        temperature: Of sampling.
        kl: Weighs the divergence from the model of the beginning (k3).
        llds: Weighs LLDS, which keeps right actions likely.
        entropy: What an undecided policy is paid.
        negative_weight: How much of an advantage below 0 counts. Wrong episodes share most of
            their tokens with right ones, so a little is safer (LLDS, arXiv:2512.04220, on why).
        masks_observations: Whether the tokens of the environment are left out of the loss.
        drops_even_groups: Whether groups of which no turn is worth more or less than its like are
            left out (the dynamic sampling of DAPO, for any estimator).
        max_gradient_norm: To which gradients are cut.
        batch_tokens: The most tokens that the model reads at once, with padding.
        play_batch: How many episodes play at once.
        seed: Decides the worlds and every draw.
        evaluate_minutes: How long between two evaluations; each makes a checkpoint.
        evaluation_episodes: Episodes of each.
        distillation: A teacher who takes part, or None.
    """

    environment: str
    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 30.0
    steps: int | None = None
    questions: int = 32
    group_size: int = 8
    rollout: Literal["groups", "trees", "tails"] = "groups"
    estimator: str = "grpo"
    objective: str = "dapo"
    average: Literal["token", "episode", "constant"] = "token"
    minibatches: int = 8
    learning_rate: float = 3e-4
    temperature: float = 1.0
    kl: float = 0.0
    llds: float = 0.0
    entropy: float = 0.0
    negative_weight: float = 1.0
    masks_observations: bool = True
    drops_even_groups: bool = True
    max_gradient_norm: float = 1.0
    batch_tokens: int = 16_384
    play_batch: int = 64
    seed: int = 0
    evaluate_minutes: float = 2.0
    evaluation_episodes: int = 200
    distillation: Distillation | None = None

    def __post_init__(self) -> None:
        """Check names and numbers."""
        for name, known in (("estimator", ESTIMATORS), ("objective", OBJECTIVES)):
            if getattr(self, name) not in known:
                raise_unknown(name, getattr(self, name), known)
        for name in ("questions", "minibatches", "batch_tokens", "play_batch"):
            check_at_least(name, getattr(self, name), 1)
        check_at_least("group_size", self.group_size, 2)
        check_at_least("evaluation_episodes", self.evaluation_episodes, 1)
        for name in ("minutes", "learning_rate", "evaluate_minutes", "temperature"):
            check_positive(name, getattr(self, name))
        if self.steps is not None:
            check_at_least("steps", self.steps, 1)
        if self.average not in ("token", "episode", "constant"):
            raise_unknown("average", self.average, ("token", "episode", "constant"))
        for name in ("negative_weight", "kl", "llds", "entropy"):
            if not getattr(self, name) >= 0:
                raise ConfigurationError(f"{name} must be 0 or more, got {getattr(self, name)!r}")
        if self.rollout not in ("groups", "trees", "tails"):
            raise_unknown("rollout", self.rollout, ("groups", "trees", "tails"))

    @property
    def record(self) -> dict[str, Any]:
        """The settings as a run's config holds them."""
        return {"method": "grpo", **asdict(self)}


class GRPO:
    """One run.

    Args:
        settings: See ``GRPOSettings``.
        folder: Where the run is kept.
        device: Where the model runs; a GPU if there is one.
    """

    def __init__(
        self, settings: GRPOSettings, folder: RunFolder, *, device: str | None = None
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.worlds = Worlds(settings.environment, settings.arguments, seed=settings.seed)
        saved = folder.resume_point()
        self.policy = LocalPolicy.from_pretrained(
            settings.model if saved is None else str(saved[1] / "model"),
            dtype="float32",
            device=device,
            name=f"grpo {folder.path.name}",
            temperature=settings.temperature,
            batch_size=settings.play_batch,
        )
        self.model = self.policy.model
        taught = settings.distillation
        self._distiller = None if taught is None else Distiller(taught, self.policy)
        self._reference = None
        if settings.kl:
            first = LocalPolicy.from_pretrained(settings.model, dtype="float32", device=device)
            self._reference = first.model.eval()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=settings.learning_rate, weight_decay=0.0
        )
        self.step, self._seconds, self._evaluated, self._reported = 0, 0.0, -1.0, -1
        if saved is not None:
            self._resume(saved[1])

    def train(self, on_log: Callable[[dict[str, Any]], None] = lambda record: None) -> Evaluation:
        """Play and update until the time or the steps are over; return the last evaluation."""
        settings, begun = self.settings, time.monotonic() - self._seconds
        if self._evaluated < 0:  # what it begins with
            self._report({}, on_log)
        record: dict[str, Any] = {}
        while True:
            self._seconds = time.monotonic() - begun
            if self._seconds >= 60 * settings.minutes or self.step == settings.steps:
                return self._report(record, on_log)
            if self._seconds - self._evaluated >= 60 * settings.evaluate_minutes:
                self._report(record, on_log)
            world = self.worlds.training(self.step)
            played = self._play(world)
            record = {"seconds": self._seconds, **self._alarms(played)}
            record |= self._learn(played, world)
            self.step += 1
            record["step"] = self.step
            self.folder.log(record)
            on_log(record)

    def _play(self, world: World) -> list[Trajectory]:
        """Play the episodes of a step, the same ones each time."""
        settings = self.settings
        seeds = np.random.SeedSequence([settings.seed, 3, self.step])
        given: dict[str, Any] = {
            "seed": int(seeds.generate_state(1)[0]) % 2**31,
            "arguments": world.arguments,
            "options": world.options,
        }
        size, questions = settings.group_size, settings.questions
        if settings.rollout == "trees":
            shape = TreeShape(trees=max(1, size // 3), expansions=2, rounds=1)
            played = generate_trees(
                self.policy, world.environment, groups=questions, shape=shape, **given
            )
        elif settings.rollout == "tails":
            tails = TailShape(chains=max(1, size // 2), branches=1)
            played = generate_tails(
                self.policy, world.environment, groups=questions, shape=tails, **given
            )
        else:
            played = generate(
                self.policy,
                world.environment,
                episodes=questions * size,
                group_size=size,
                **given,
            )
        return list(Valid()(played))

    def _learn(self, played: Sequence[Trajectory], world: World) -> dict[str, float]:
        """Update the model from the episodes; return what the updates were like."""
        settings = self.settings
        worth = ESTIMATORS[settings.estimator](played)
        used = uneven(played, worth) if settings.drops_even_groups else range(len(played))
        blame = max(settings.negative_weight, _LEAST_WEIGHT)  # what is worse never counts as good
        episodes = prepare(
            [played[place] for place in used],
            [np.where(worth[place] < 0, blame * worth[place], worth[place]) for place in used],
            masks_observations=settings.masks_observations,
        )
        generator = np.random.default_rng(np.random.SeedSequence([settings.seed, 4, self.step]))
        rate = settings.learning_rate * min(1.0, (self.step + 1) / 10) * (1 - 0.9 * self._done())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        figures: list[dict[str, float]] = []
        if not settings.masks_observations:  # nobody drew those tokens: score them as they are
            episodes = [episode.scored(self.model, settings.temperature) for episode in episodes]
        lessons, weight = self._lessons(played, world)
        none: list[Episode] = []
        for batch, taught in zip_longest(
            minibatches(episodes if weight < 1 else none, settings.minibatches, generator),
            minibatches(lessons, settings.minibatches, generator),
            fillvalue=none,
        ):
            figures.append(self._update(batch, taught, weight))
        names = figures[0] if figures else {}
        means = {name: float(np.mean([each[name] for each in figures])) for name in names}
        return {"learned_from": len(used) / max(1, len(played)), **means}

    def _lessons(
        self, played: Sequence[Trajectory], world: World
    ) -> tuple[Sequence[Episode], float]:
        """Return what a teacher makes of the episodes, and how much the distillation weighs."""
        if self._distiller is None:
            return [], 0.0
        weight = self._distiller.settings.weight_at(self._done())
        return self._distiller.lessons(played, world) if weight else [], weight

    def _done(self) -> float:
        """Return how much of the run is over, from 0 to 1; of steps, if they are given."""
        if self.settings.steps is not None:
            return self.step / self.settings.steps
        return min(1.0, self._seconds / (60 * self.settings.minutes))

    def _update(
        self, episodes: Sequence[Episode], lessons: Sequence[Episode] = (), weight: float = 0.0
    ) -> dict[str, float]:
        """Make one step of the optimizer, reading so many tokens at once as fit."""
        settings = self.settings
        self.model.train()
        parts = Episode.parts(episodes, settings.batch_tokens)
        totals = {"loss": 0.0, "token_entropy": 0.0, "ratio_off": 0.0}
        for part in parts:
            batch, mean_entropy = Episode.batch(
                part,
                self.model,
                self._reference,
                temperature=settings.temperature,
                pays_entropy=settings.entropy > 0,
            )
            shares = {how: _share(part, episodes, how) for how in ("token", "episode", "constant")}
            share = shares["token"]
            loss = (1 - weight) * self._loss(batch, mean_entropy, shares)
            loss.backward()
            off = (batch.log_probs.detach() - batch.old_log_probs)[batch.mask].abs()
            totals["loss"] += loss.item()
            totals["token_entropy"] += share * float(mean_entropy)
            totals["ratio_off"] += share * float(off.mean() if len(off) else 0.0)
        if self._distiller is not None:
            totals["distillation_weight"] = weight
            totals["distillation_loss"] = self._distiller.learn(
                lessons, self.model, weight=weight, tokens=settings.batch_tokens
            )
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.max_gradient_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
        self.optimizer.zero_grad()
        return totals | {"gradient_norm": float(norm)}

    def _loss(
        self, batch: TokenBatch, mean_entropy: torch.Tensor, shares: Mapping[str, float]
    ) -> torch.Tensor:
        """Return what a part adds to the loss of its minibatch, each term by its own share."""
        settings = self.settings
        mean = partial(aggregate, batch=batch, how=settings.average, length=_LENGTH)
        loss = shares[settings.average] * mean(OBJECTIVES[settings.objective](batch))
        if settings.kl:
            loss = loss + shares[settings.average] * settings.kl * mean(kl(batch))
        if settings.llds:
            kept = aggregate(llds(batch), batch, "episode")
            loss = loss + shares["episode"] * settings.llds * kept
        return loss - shares["token"] * settings.entropy * mean_entropy

    def _alarms(self, played: Sequence[Trajectory]) -> dict[str, float | None]:
        """Return what shows early that a run goes wrong.

        ``right_log_prob`` is the mean log-probability of the tokens of right episodes: it falls
        long before GRPO collapses (LLDS, arXiv:2512.04220).
        """
        right = [t for t in played if t.outcome.get("exact_match") == 1]
        drawn = [
            log_prob
            for trajectory in right
            for segment in trajectory.segments
            for log_prob, is_drawn in zip(segment.log_probs, segment.mask, strict=True)
            if is_drawn
        ]
        return {
            "reward": float(np.mean([t.total_reward for t in played])) if played else None,
            "right": len(right) / max(1, len(played)),
            "right_log_prob": float(np.mean(drawn)) if drawn else None,
            **behaviour(played),
        }

    def _report(
        self, record: Mapping[str, Any], on_log: Callable[[dict[str, Any]], None]
    ) -> Evaluation:
        """Evaluate, log, and make a checkpoint."""
        settings = self.settings
        self._evaluated = self._seconds
        greedy = copy.copy(self.policy)
        greedy.sampler = type(self.policy.sampler)(0.0)
        found = evaluate(
            greedy,
            self.worlds.held_out(),
            episodes=settings.evaluation_episodes,
            seed=settings.seed,
        )
        held_out = {f"held_out_{name}": value for name, value in found.record.items()}
        line = {"step": self.step, "seconds": self._seconds, **held_out}
        if self._reported != self.step:  # else a run that was over is looked at again
            self.folder.log(line)
            self.folder.save(self.step, self._write)
            self._reported = self.step
        on_log({**record, **line})
        return found

    def _write(self, path: Path) -> None:
        self.policy.save(path / "model")
        torch.save(
            {
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
                "seconds": self._seconds,
                "evaluated": self._evaluated,
            },
            path / "state.pt",
        )

    def _resume(self, path: Path) -> None:
        with reading_checkpoint(path):
            state = torch.load(path / "state.pt", map_location="cpu", weights_only=True)
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self._seconds = state["step"], state["seconds"]
            self._evaluated, self._reported = state["evaluated"], state["step"]


_LEAST_WEIGHT = 1e-9
_LENGTH = 128  # the constant that Dr. GRPO divides by, in tokens


def _share(part: Sequence[Episode], whole: Sequence[Episode], average: str) -> float:
    """Return how much of a minibatch's mean is that of one part of it."""
    if average != "token":
        return len(part) / max(1, len(whole))
    return sum(e.drawn for e in part) / max(1, sum(e.drawn for e in whole))
