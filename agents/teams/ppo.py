"""Independent PPO for a team that chooses from menus, in numpy: read it top to bottom.

Every agent learns alone, from its own choices and its own rewards (independent PPO,
arXiv:2011.09533; the clipped objective, arXiv:1707.06347; advantages, arXiv:1506.02438). A small
network scores each choice of a menu by its features, and a softmax over the legal ones draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...envs.menus import WIDTH
from ...envs.team import TeamMenuEnv

__all__ = ["IndependentPPO", "PPOSettings", "Update"]

Array = np.ndarray


@dataclass(frozen=True)
class PPOSettings:
    """What the learner is set to.

    Attributes:
        episodes: Episodes between two updates.
        epochs: Passes over them in an update.
        learning_rate: Of Adam.
        clip: How far a probability may move before its gradient stops.
        discount: Of later rewards.
        trace: The lambda of the advantages.
        entropy: What an undecided policy is paid.
        hidden: Units of the hidden layer.
    """

    episodes: int = 32
    epochs: int = 4
    learning_rate: float = 0.003
    clip: float = 0.2
    discount: float = 1.0
    trace: float = 0.95
    entropy: float = 0.01
    hidden: int = 32


class Update(NamedTuple):
    """What one update was made from.

    Attributes:
        episodes: Episodes played so far.
        steps: Choices made so far, of all agents together.
        mean_return: The mean of the team's returns in the episodes of this update.
    """

    episodes: int
    steps: int
    mean_return: float


class _Step(NamedTuple):
    inputs: Array  # (choices, inputs): the legal choices, what each looks like
    choice: int  # which of them
    log_probability: float
    value: float


@dataclass
class _Memory:
    steps: list[_Step] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class IndependentPPO:
    """Learns one policy for each agent of a menu team.

    Args:
        env: The team.
        seed: Decides the first weights, the tasks and every draw.
        settings: See ``PPOSettings``.
    """

    def __init__(
        self, env: TeamMenuEnv, *, seed: int = 0, settings: PPOSettings | None = None
    ) -> None:
        self.env = env
        self.settings = settings or PPOSettings()
        self._seeds = np.random.SeedSequence([seed])
        self._generator = np.random.default_rng(self._seeds)
        self.networks = {
            agent: _Network(self.settings, self._generator) for agent in env.possible_agents
        }
        self._done = Update(0, 0, 0.0)
        env.reset(seed=seed)

    def train(self, goes_on: Callable[[Update], bool]) -> list[Update]:
        """Play and update while ``goes_on`` says so, and return every update."""
        updates: list[Update] = []
        while goes_on(self._done):
            memories: dict[str, list[_Memory]] = {a: [] for a in self.env.possible_agents}
            returns = []
            steps = self._done.steps
            for _ in range(self.settings.episodes):
                played, total = self._play()
                returns.append(total)
                for agent, memory in played.items():
                    steps += len(memory.steps)
                    memories[agent].append(memory)
            for agent, network in self.networks.items():
                network.update(memories[agent])
            episodes = self._done.episodes + len(returns)
            self._done = Update(episodes, steps, float(np.mean(returns)))
            updates.append(self._done)
        return updates

    def evaluate(self, env: TeamMenuEnv, tasks: Sequence[str]) -> list[float]:
        """Return the team's return in each task, every agent taking its likeliest choice.

        A policy that has learned nothing takes the first choice, which is no better than another.
        """
        returns = []
        for task in tasks:
            observations, infos = env.reset(seed=0, options={"task": task})
            while env.agents:
                actions = {
                    agent: self.networks[agent].best(observations[agent]) for agent in env.asked()
                }
                observations, _, _, _, infos = env.step(actions)
            returns.append(float(infos["leader_0"]["team_return"]))
        return returns

    def _play(self) -> tuple[dict[str, _Memory], float]:
        env = self.env
        memories = {agent: _Memory() for agent in env.possible_agents}
        observations, infos = env.reset()
        while env.agents:
            actions = {}
            for agent in env.asked():
                actions[agent], step = self.networks[agent].draw(observations[agent])
                memories[agent].steps.append(step)
                memories[agent].rewards.append(0.0)
            observations, rewards, _, _, infos = env.step(actions)
            for agent, reward in rewards.items():
                if memories[agent].rewards:
                    memories[agent].rewards[-1] += reward
        return memories, float(infos["leader_0"]["team_return"])


class _Network:
    """Scores choices, and guesses the return: two one-layer networks, trained by Adam."""

    def __init__(self, settings: PPOSettings, generator: np.random.Generator) -> None:
        self.settings = settings
        self._generator = generator
        width = TeamMenuEnv.globals_size + WIDTH
        scale = 1 / np.sqrt(width)
        self._weights = {
            "policy_in": generator.normal(0, scale, (width, settings.hidden)),
            "policy_out": np.zeros(settings.hidden),
            "value_in": generator.normal(0, scale, (width, settings.hidden)),
            "value_out": np.zeros(settings.hidden),
        }
        self._moments = {
            name: (np.zeros_like(w), np.zeros_like(w)) for name, w in self._weights.items()
        }
        self._updates = 0

    def draw(self, observation: dict[str, Array]) -> tuple[int, _Step]:
        """Return the place of a drawn choice, and what to remember of it."""
        places, inputs = _legal(observation)
        probabilities = _softmax(self._scores(inputs)[1])
        choice = int(self._generator.choice(len(places), p=probabilities))
        value = float(
            np.tanh(inputs.mean(0) @ self._weights["value_in"]) @ self._weights["value_out"]
        )
        return int(places[choice]), _Step(
            inputs, choice, float(np.log(probabilities[choice])), value
        )

    def best(self, observation: dict[str, Array]) -> int:
        """Return the place of the likeliest choice."""
        places, inputs = _legal(observation)
        return int(places[int(np.argmax(self._scores(inputs)[1]))])

    def update(self, episodes: Sequence[_Memory]) -> None:
        """Improve the policy and the guess from some episodes."""
        settings = self.settings
        steps = [step for memory in episodes for step in memory.steps]
        if not steps:
            return
        gains = np.concatenate(
            [_advantages(memory, settings) for memory in episodes if memory.steps]
        )
        targets = gains + np.array([step.value for step in steps])
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        for _ in range(settings.epochs):
            gradients = {name: np.zeros_like(weight) for name, weight in self._weights.items()}
            for step, gain, target in zip(steps, gains, targets, strict=True):
                self._add_policy_gradient(gradients, step, gain)
                self._add_value_gradient(gradients, step, target)
            self._adam({name: gradient / len(steps) for name, gradient in gradients.items()})

    def _scores(self, inputs: Array) -> tuple[Array, Array]:
        hidden = np.tanh(inputs @ self._weights["policy_in"])
        return hidden, hidden @ self._weights["policy_out"]

    def _add_policy_gradient(self, gradients: dict[str, Array], step: _Step, gain: float) -> None:
        hidden, scores = self._scores(step.inputs)
        probabilities = _softmax(scores)
        logs = np.log(probabilities + 1e-12)
        ratio = np.exp(logs[step.choice] - step.log_probability)
        is_clipped = (gain > 0 and ratio > 1 + self.settings.clip) or (
            gain < 0 and ratio < 1 - self.settings.clip
        )
        by_score = -self.settings.entropy * probabilities * (logs - probabilities @ logs)
        if not is_clipped:
            by_score -= gain * ratio * probabilities
            by_score[step.choice] += gain * ratio
        gradients["policy_out"] += hidden.T @ by_score
        by_hidden = np.outer(by_score, self._weights["policy_out"]) * (1 - hidden**2)
        gradients["policy_in"] += step.inputs.T @ by_hidden

    def _add_value_gradient(self, gradients: dict[str, Array], step: _Step, target: float) -> None:
        inputs = step.inputs.mean(0)
        hidden = np.tanh(inputs @ self._weights["value_in"])
        error = target - hidden @ self._weights["value_out"]
        gradients["value_out"] += error * hidden
        by_hidden = error * self._weights["value_out"] * (1 - hidden**2)
        gradients["value_in"] += np.outer(inputs, by_hidden)

    def _adam(self, gradients: dict[str, Array]) -> None:
        """Climb: Adam (arXiv:1412.6980)."""
        self._updates += 1
        for name, gradient in gradients.items():
            first, second = self._moments[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            step = first / (1 - 0.9**self._updates)
            size = np.sqrt(second / (1 - 0.999**self._updates)) + 1e-8
            self._weights[name] += self.settings.learning_rate * step / size


def _advantages(memory: _Memory, settings: PPOSettings) -> Array:
    """Return the generalised advantage of each step of an episode."""
    values = [step.value for step in memory.steps] + [0.0]
    gains = np.zeros(len(memory.steps))
    ahead = 0.0
    for place in reversed(range(len(gains))):
        surprise = memory.rewards[place] + settings.discount * values[place + 1] - values[place]
        ahead = surprise + settings.discount * settings.trace * ahead
        gains[place] = ahead
    return gains


def _legal(observation: dict[str, Array]) -> tuple[Array, Array]:
    """Return the places of the legal choices, and the inputs that stand for them."""
    places = np.flatnonzero(observation["action_mask"])
    size = TeamMenuEnv.globals_size
    features = observation["observation"][size:].reshape(-1, WIDTH)[places]
    shared = np.broadcast_to(observation["observation"][:size], (len(places), size))
    return places, np.concatenate((shared, features), axis=1).astype(np.float64)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())
