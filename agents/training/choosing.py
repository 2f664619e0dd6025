"""Networks for menus: every choice is scored with the same weights, wherever it stands.

They are policies of stable-baselines3 and sb3-contrib over the features of ``Features(Menu(env))``.
"""

from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import nn

from ...envs.wrappers.features import Features

__all__ = ["ChoosingDQNPolicy", "ChoosingMaskablePolicy", "ChoosingPolicy", "Scorer"]

_KINDS = 4  # the first features of a choice say what it does; without a choice all are 0
_HIDDEN = 64


class Scorer(nn.Module):
    """Scores each choice by its features and the episode's, and the state by all of them.

    Args:
        size: How many places a menu has.
        hidden: Units of each hidden layer.

    Attributes:
        latent_dim_pi: The width of what the policy head gets: a score for each place.
        latent_dim_vf: The width of what the value head gets.
    """

    def __init__(self, size: int, hidden: int = _HIDDEN) -> None:
        super().__init__()
        self._size = size
        width = Features.episode_width + Features.choice_width
        self._body = nn.Sequential(
            nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self._score = nn.Linear(hidden, 1)
        self._state = nn.Sequential(nn.Linear(width, hidden), nn.Tanh())
        self.latent_dim_pi = size
        self.latent_dim_vf = 2 * hidden

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores, shape (batch, size), and what the value head gets."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        """Return a score for each place, shape (batch, size)."""
        scores: torch.Tensor = self._score(self._body(self._rows(features))).squeeze(-1)
        return scores

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        """Return the mean and the maximum over the choices that there are, side by side."""
        rows = self._rows(features)
        start = Features.episode_width
        is_choice = rows[..., start : start + _KINDS].sum(-1, keepdim=True)
        hidden = self._state(rows)
        mean = (hidden * is_choice).sum(1) / is_choice.sum(1).clamp(min=1)
        highest = (hidden - 2 * (1 - is_choice)).amax(1)  # below what tanh can give
        return torch.cat((mean, highest.clamp(min=-1)), dim=-1)

    def _rows(self, features: torch.Tensor) -> torch.Tensor:
        """Return one row for each place: the episode's features, then the choice's own."""
        shared, choices = features.split(
            [Features.episode_width, self._size * Features.choice_width], dim=-1
        )
        rows = choices.reshape(-1, self._size, Features.choice_width)
        return torch.cat((shared.unsqueeze(1).expand(-1, self._size, -1), rows), dim=-1)


class ChoosingPolicy(ActorCriticPolicy):
    """For PPO and A2C."""

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor: Any = _scorer_of(self.action_space)

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        _take_scores_as_logits(self, lr_schedule)


class ChoosingMaskablePolicy(MaskableActorCriticPolicy):
    """For MaskablePPO."""

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor: Any = _scorer_of(self.action_space)

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        _take_scores_as_logits(self, lr_schedule)


def _scorer_of(actions: spaces.Space[Any]) -> Scorer:
    assert isinstance(actions, spaces.Discrete)
    return Scorer(int(actions.n))


def _take_scores_as_logits(policy: Any, lr_schedule: Schedule) -> None:
    """Leave out the layer after the scores, and train what remains."""
    policy.action_net = nn.Identity()
    policy.optimizer = policy.optimizer_class(
        policy.parameters(), lr=lr_schedule(1), **policy.optimizer_kwargs
    )


class _ChoosingQNetwork(QNetwork):
    """The value of each choice, by the same weights."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.q_net = nn.Sequential(_Scores(_scorer_of(self.action_space)))


class _Scores(nn.Module):
    """Only the scores of a scorer."""

    def __init__(self, scorer: Scorer) -> None:
        super().__init__()
        self.scorer = scorer

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.scorer.forward_actor(features)


class ChoosingDQNPolicy(DQNPolicy):
    """For DQN."""

    def make_q_net(self) -> QNetwork:
        """Return the network that values choices."""
        options = self._update_features_extractor(self.net_args, features_extractor=None)
        return _ChoosingQNetwork(**options).to(self.device)
