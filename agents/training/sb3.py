"""Train with stable-baselines3 or sb3-contrib on an environment in numbers.

A menu environment, or any text environment with a menu around it, is learned by networks that
score every choice with the same weights; any other environment with ``Box`` observations and
``Discrete`` actions by the libraries' own. They are so small that a GPU would only wait for the
environment: the device is the CPU.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean as mean
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from ...corpora.errors import ConfigurationError, MissingExtraError, raise_unknown
from ...envs.base import SearchEnv
from ...envs.rules import check_positive
from ...envs.wrappers.features import Features, find_features
from ...envs.wrappers.menu import Menu, find_menu
from .curves import draw_curves
from .run import RunFolder, reading_checkpoint

__all__ = [
    "ALGORITHMS",
    "LearnedPolicy",
    "SB3Settings",
    "load_policy",
    "make_numeric",
    "play_returns",
    "train",
    "use_one_thread",
]

ALGORITHMS = ("maskable-ppo", "ppo", "dqn", "a2c")
_MODEL, _STATE = "model.zip", "state.json"
_LAST_RETURNS = 200
_ENDLESS = 10**12  # steps: it is the time that ends a run
_OPTIONS: dict[str, dict[str, Any]] = {
    "maskable-ppo": {"n_steps": 128, "batch_size": 256, "n_epochs": 4, "ent_coef": 0.01},
    "ppo": {"n_steps": 128, "batch_size": 256, "n_epochs": 4, "ent_coef": 0.01},
    "a2c": {"n_steps": 16, "ent_coef": 0.01},
    "dqn": {
        "buffer_size": 50_000,
        "learning_starts": 500,
        "batch_size": 64,
        "train_freq": 4,
        "target_update_interval": 500,
        "exploration_fraction": 1e-8,  # of the steps that are asked for: ten thousand
    },
}


@dataclass(frozen=True)
class SB3Settings:
    """What a run is set to.

    Attributes:
        env: The id of the environment.
        algorithm: One of ``ALGORITHMS``.
        minutes: How long to train, evaluations included.
        seed: Decides weights, tasks and draws.
        env_args: What else ``gym.make`` is given.
        test_args: What else it is given for evaluation, beside ``env_args``: by default
            ``split="test"``, which no training task is of.
        envs: How many environments play side by side; DQN takes one.
        learning_rate: Of the optimizer.
        discount: Of later rewards.
        log_seconds: The longest time between two lines of the log.
        evaluate_seconds: The time between two evaluations.
        evaluate_episodes: Episodes of each.
        checkpoint_seconds: The time between two checkpoints.
        max_steps: Ends the run, if the time does not end it before; None for no limit.
    """

    env: str = "seekgym/PhantomMenu-v0"
    algorithm: str = "maskable-ppo"
    minutes: float = 5.0
    seed: int = 0
    env_args: Mapping[str, Any] = field(default_factory=dict)
    test_args: Mapping[str, Any] = field(default_factory=lambda: {"split": "test"})
    envs: int = 8
    learning_rate: float = 1e-3
    discount: float = 0.99
    log_seconds: float = 5.0
    evaluate_seconds: float = 30.0
    evaluate_episodes: int = 50
    checkpoint_seconds: float = 20.0
    max_steps: int | None = None


class LearnedPolicy(NamedTuple):
    """A policy that was learned.

    Attributes:
        algorithm: By which algorithm.
        model: The model of the library.
    """

    algorithm: str
    model: Any

    def choose(self, observation: np.ndarray, mask: np.ndarray | None = None) -> int:
        """Return the best action, among those that the mask allows if there is one."""
        options: dict[str, Any] = {}
        if self.algorithm == "maskable-ppo" and mask is not None:
            options["action_masks"] = mask
        action, _ = self.model.predict(observation, deterministic=True, **options)
        return int(action)


def train(
    settings: SB3Settings,
    folder: str | os.PathLike[str],
    *,
    resume: bool = False,
    on_progress: Callable[[float, Mapping[str, float | int | str | None]], None] = (
        lambda seconds, values: None
    ),
) -> LearnedPolicy:
    """Train until the time is up, and leave config, log, curves, checkpoints and the policy.

    The time is that of the run as a whole: a run that is resumed goes on with what is left since
    its last checkpoint. The episodes in play at a checkpoint are begun anew.

    Args:
        settings: See ``SB3Settings``.
        folder: Of the run; its last checkpoint holds the policy.
        resume: Go on with the run that the folder holds.
        on_progress: Called with the seconds so far and the latest figures.

    Raises:
        ConfigurationError: A setting cannot be used, or the folder is of another run.
        MissingExtraError: A library is not installed.
    """
    _libraries()
    if settings.algorithm not in ALGORITHMS:
        raise_unknown("algorithm", settings.algorithm, ALGORITHMS)
    check_positive("minutes", settings.minutes)
    test_env = make_numeric(settings.env, {**settings.env_args, **settings.test_args})
    if settings.algorithm == "maskable-ppo" and not _has_masks(test_env):
        raise ConfigurationError(
            f"maskable-ppo needs an environment with action_masks(), and {settings.env} has none; "
            "take ppo, a2c or dqn (--algorithm)"
        )
    run = RunFolder.begin(folder, asdict(settings), resume=resume)
    try:
        draw_curves(run.records(), run.path)  # says at once if a library is missing
        return _Trainer(settings, run, test_env, on_progress).train()
    finally:
        run.close()


def use_one_thread() -> None:
    """Let PyTorch compute in one thread from now on: the networks are so small that more wait."""
    _libraries()
    import torch

    torch.set_num_threads(1)


def load_policy(path: str | os.PathLike[str]) -> LearnedPolicy:
    """Return the policy of a run: of its folder, or of one checkpoint of it.

    Raises:
        ConfigurationError: There is none.
    """
    _libraries()
    place = Path(path)
    for folder in (place, *sorted((place / "checkpoints").glob("step-*"), reverse=True)):
        if (folder / _MODEL).exists() and (folder / _STATE).exists():
            with reading_checkpoint(folder):
                state = json.loads((folder / _STATE).read_text())
                model = _algorithm(state["algorithm"]).load(folder / _MODEL, device="cpu")
            return LearnedPolicy(state["algorithm"], model)
    raise ConfigurationError(
        f"{path} holds no policy of train sb3; pass the folder of such a run (language models are "
        "played by --agent local)"
    )


def _has_masks(env: gym.Env[Any, Any]) -> bool:
    try:
        return callable(env.get_wrapper_attr("action_masks"))
    except AttributeError:
        return False


def make_numeric(env_id: str, arguments: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Make an environment, with a menu in numbers around it if it is one of text.

    Raises:
        ConfigurationError: It cannot be made, or no numbers can be had from it.
    """
    try:
        env = gym.make(env_id, **arguments)
    except (gym.error.Error, ModuleNotFoundError, TypeError) as error:
        raise ConfigurationError(
            f"environment {env_id!r} cannot be made with {dict(arguments)} (--env-args, "
            f"--test-args): {error}"
        ) from None
    if isinstance(env.unwrapped, SearchEnv) and find_features(env) is None:
        menu = find_menu(env)
        return Features(Menu(env) if menu is None else menu)
    if not isinstance(env.action_space, Discrete) or not isinstance(env.observation_space, Box):
        raise ConfigurationError(
            f"{env_id} has observations {env.observation_space} and actions {env.action_space}; "
            "a Box and a Discrete are needed"
        )
    return env


class _Trainer:
    """One run."""

    def __init__(
        self,
        settings: SB3Settings,
        run: RunFolder,
        test_env: gym.Env[Any, Any],
        on_progress: Callable[[float, Mapping[str, Any]], None],
    ) -> None:
        self.settings = settings
        self.run = run
        self.test_env = test_env
        self.on_progress = on_progress
        self.latest: dict[str, Any] = {}
        self.returns: list[float] = []
        self.losses: dict[str, float] = {}
        self.before, self.began = 0.0, time.monotonic()
        self.logged = self.evaluated = self.saved = 0.0

    @property
    def seconds(self) -> float:
        """How long the run has trained, resumed or not."""
        return self.before + time.monotonic() - self.began

    def train(self) -> LearnedPolicy:
        model = self._model()
        self.policy = LearnedPolicy(self.settings.algorithm, model)
        self.logged = self.evaluated = self.saved = self.seconds
        if self.before and self._is_over:
            return self.policy  # it was finished before
        if self.before == 0:
            self._measure(evaluate=True)
        model.learn(_ENDLESS, callback=_callback(self), reset_num_timesteps=False)
        self._measure(evaluate=True)
        self._save()
        return self.policy

    @property
    def _is_over(self) -> bool:
        steps, most = self.policy.model.num_timesteps, self.settings.max_steps
        return self.seconds >= 60 * self.settings.minutes or (most is not None and steps >= most)

    def _model(self) -> Any:
        settings = self.settings
        env = _vector(settings)
        newest = self.run.resume_point()
        kind = _algorithm(settings.algorithm)
        if newest is not None:
            step, place = newest
            with reading_checkpoint(place):
                state = json.loads((place / _STATE).read_text())
                self.before, self.began = state["seconds"], time.monotonic()
                model = kind.load(place / _MODEL, env=env, device="cpu")
                if settings.algorithm == "dqn":
                    model.load_replay_buffer(place / "replay.pkl")
            entropy = np.random.SeedSequence([settings.seed, step])
            model.set_random_seed(int(entropy.generate_state(1)[0]) // 2)
            return model
        return kind(
            _policy(settings.algorithm, is_menu=find_features(self.test_env) is not None),
            env,
            learning_rate=settings.learning_rate,
            gamma=settings.discount,
            seed=settings.seed,
            device="cpu",
            **_OPTIONS[settings.algorithm],
        )

    def on_step(self, infos: list[dict[str, Any]]) -> bool:
        """Note what ended, log, evaluate; return whether to go on."""
        self.returns += [info["episode"]["r"] for info in infos if "episode" in info]
        del self.returns[:-_LAST_RETURNS]
        seconds = self.seconds
        if seconds - self.evaluated >= self.settings.evaluate_seconds:
            self.evaluated = seconds
            self._measure(evaluate=True)
        elif seconds - self.logged >= self.settings.log_seconds:
            self._measure(evaluate=False)
        return not self._is_over

    def on_rollout_end(self) -> None:
        """Note the losses of the last update; save where the last checkpoint is old enough."""
        told = self.policy.model.logger.name_to_value
        self.losses |= {k[6:]: float(v) for k, v in told.items() if k.startswith("train/")}
        if self.seconds - self.saved >= self.settings.checkpoint_seconds:
            self._save()

    def _measure(self, *, evaluate: bool) -> None:
        self.logged = self.seconds
        values: dict[str, Any] = {
            "step": self.policy.model.num_timesteps,
            "seconds": round(self.seconds, 2),
            "return": mean(self.returns) if self.returns else None,
        }
        if evaluate:
            episodes = self.settings.evaluate_episodes
            values["test_return"] = mean(play_returns(self.policy, self.test_env, episodes))
        self.run.log({**values, **self.losses})
        self.latest |= values
        self.on_progress(self.seconds, self.latest)
        if evaluate:
            draw_curves(self.run.records(), self.run.path)

    def _save(self) -> None:
        self.saved = self.seconds
        model = self.policy.model

        def write(place: Path) -> None:
            model.save(place / _MODEL)
            if self.settings.algorithm == "dqn":
                model.save_replay_buffer(place / "replay.pkl")
            state = {"algorithm": self.settings.algorithm, "seconds": self.seconds}
            (place / _STATE).write_text(json.dumps(state))

        self.run.save(model.num_timesteps, write)


def play_returns(
    policy: LearnedPolicy, env: gym.Env[Any, Any], episodes: int, *, seed: int = 0
) -> list[float]:
    """Return what a policy earns in so many episodes; the seed draws them."""
    seeds = np.random.SeedSequence([seed, 1]).generate_state(episodes)
    returns = []
    for episode_seed in seeds:
        observation, info = env.reset(seed=int(episode_seed))
        total, is_over = 0.0, False
        while not is_over:
            action = policy.choose(observation, info.get("action_mask"))
            observation, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            is_over = terminated or truncated
        returns.append(total)
    return returns


def _libraries() -> None:
    try:
        import sb3_contrib  # noqa: F401
        import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "stable-baselines3", "sb3") from None


def _algorithm(name: str) -> Any:
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import A2C, DQN, PPO

    return {"maskable-ppo": MaskablePPO, "ppo": PPO, "a2c": A2C, "dqn": DQN}[name]


def _policy(algorithm: str, *, is_menu: bool) -> Any:
    """Return the policy class: one that scores choices alike, for a menu."""
    if not is_menu:
        return "MlpPolicy"
    from . import choosing

    if algorithm == "maskable-ppo":
        return choosing.ChoosingMaskablePolicy
    return choosing.ChoosingDQNPolicy if algorithm == "dqn" else choosing.ChoosingPolicy


def _vector(settings: SB3Settings) -> Any:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    def make() -> gym.Env[Any, Any]:
        return Monitor(make_numeric(settings.env, settings.env_args))

    return DummyVecEnv([make] * (1 if settings.algorithm == "dqn" else settings.envs))


def _callback(trainer: _Trainer) -> Any:
    from stable_baselines3.common.callbacks import BaseCallback

    class Callback(BaseCallback):
        def _on_step(self) -> bool:
            return trainer.on_step(self.locals["infos"])

        def _on_rollout_end(self) -> None:
            trainer.on_rollout_end()

    return Callback()
