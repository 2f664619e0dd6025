"""Checks of what a single environment promises: spaces, info, rewards, ends, failures."""

import logging
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from ..envs.transcript import describe_action
from ..envs.wrappers.menu import find_menu
from .probe import HOSTILE, Case, CheckFailedError, Record, actions_for, game_of, plain, record

__all__ = [
    "check_backend_failure",
    "check_documentation",
    "check_ends",
    "check_gymnasium",
    "check_hostile_actions",
    "check_info",
    "check_rewards",
    "check_spaces",
]

_HEADINGS = ("Task:", "Observation:", "Actions:", "Reward:", "Ends:", "Optimum:", "Versions:")
_ALWAYS = (
    "task_id env_hash turn turns_left documents new_documents error failure valid searches "
    "valid_calls invalid_calls"
).split()
_AT_END = ("calls", "gold_answers", "evidence", "entities", "hops")  # and its score_keys


def check_gymnasium(case: Case) -> None:
    """Gymnasium's own checker passes without a warning."""
    env = case.view()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case.menu() is not None:  # the view is what its wrappers make of it
            warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
        check_env(env, skip_render_check=env.spec is None)


def check_spaces(case: Case) -> None:
    """Samples belong to their space, are seeded, and observations belong to theirs."""
    env = case.make()
    for space in (env.action_space, env.observation_space):
        for seed in range(200):
            space.seed(seed)
            sample = space.sample()
            _expect(space.contains(sample), f"{space} samples {sample!r:.80}, which it lacks")
            space.seed(seed)
            is_same = plain(space.sample()) == plain(sample)
            _expect(is_same, f"{space}: sample() differs for the same seed")
        _expect(pickle.loads(pickle.dumps(space)) == space, f"{space} does not survive pickling")
    for step in _played(case, 100, seed=1):
        shown = f"an observation of length {len(step.observation)}"
        _expect(env.observation_space.contains(step.observation), f"{shown} is not in its space")
        step.info.get("text", step.observation).encode()


def check_info(case: Case) -> None:
    """Every info has its keys, and gold appears only when the episode is over."""
    at_end = (*case.game().score_keys, *_AT_END)
    for step in _played(case, 120, seed=2):
        is_over = step.terminated or step.truncated
        missing = [key for key in _ALWAYS if key not in step.info]
        _expect(not missing, f"info lacks {missing}")
        if is_over:
            missing = [key for key in at_end if key not in step.info]
            _expect(not missing, f"the last info lacks {missing}")
        else:
            early = [key for key in at_end if key in step.info]
            _expect(not early, f"info holds {early} before the episode is over")
        _expect(step.info["turn"] == 0 or "reward_terms" in step.info, "info lacks reward_terms")


def check_hostile_actions(case: Case) -> None:
    """No action raises; a wrong one costs a turn and is named in info and observation."""
    env = case.make()
    actions = [*HOSTILE, *actions_for(env, 200, seed=3)]
    _, info = env.reset(seed=0)
    for action in actions:
        turn, shown = info["turn"], describe_action(action)[:80]
        observation, _, terminated, truncated, info = env.step(action)
        _expect(info["turn"] == turn + 1, f"{shown} did not cost a turn")
        if not env.action_space.contains(action):
            _expect(info["error"] is not None, f"{shown} left info['error'] empty")
            text = info.get("text", observation)
            _expect(bool(text.strip()), f"{shown} got an empty observation")
        if terminated or truncated:
            _, info = env.reset()


def check_rewards(case: Case) -> None:
    """The reward is the sum of its terms, to the last bit, and keeps to the stated range."""
    env = case.game()
    low, high = env.reward_range
    for step in _played(case, 200, seed=4):
        if "reward_terms" not in step.info:
            continue
        total = sum(step.info["reward_terms"].values())
        _expect(total == step.reward, f"the terms add up to {total}, the reward is {step.reward}")
        _expect(low <= step.reward <= high, f"reward {step.reward} is outside {low} to {high}")


def check_ends(case: Case) -> None:
    """An episode ends within its budget, in one way, and then takes no more steps."""
    env = case.make()
    budget = case.game().max_turns
    for seed in range(20):
        env.reset(seed=seed)
        actions = actions_for(env, budget + 1, seed=seed)
        for turn, action in enumerate(actions, start=1):
            _expect(turn <= budget, f"the episode goes on after {budget} turns")
            _, _, terminated, truncated, _ = env.step(action)
            _expect(not (terminated and truncated), "terminated and truncated at once")
            if terminated or truncated:
                break
        try:
            env.step(actions[0])
        except ResetNeeded:
            continue
        raise CheckFailedError("step() after the end did not raise ResetNeeded")


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Keep the log silent about a failure that is made on purpose."""
    logger = logging.getLogger("seekgym")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def check_backend_failure(case: Case) -> None:
    """A failing backend gives a failure, never a score or a result."""
    view = case.view()
    view.reset(seed=0)
    game = game_of(view)
    call = game.break_backend()
    menu = find_menu(view)
    if menu is not None:
        call = [choice.kind for choice in menu.choices()].index("search")
    with _quiet_log():
        _, reward, terminated, truncated, info = view.step(call)
    _expect(truncated and not terminated, "a failing backend did not truncate the episode")
    _expect(info["failure"] == "infrastructure", f"info['failure'] is {info['failure']!r}")
    _expect(info["valid"] is False, "info['valid'] is not False")
    _expect(reward == 0, f"a failing backend was paid {reward}")
    scored = [key for key in game.score_keys if info[key] is not None]
    _expect(not scored, f"a failing backend was scored: {scored}")


def check_documentation(case: Case) -> None:
    """The class docstring is the page that users read, with all its headings."""
    env = case.game()
    text = type(env).__doc__ or ""
    missing = [heading for heading in _HEADINGS if heading not in text]
    _expect(not missing, f"the docstring of {type(env).__name__} lacks {missing}")


def _played(case: Case, count: int, *, seed: int) -> list[Record]:
    env = case.make()
    return record(env, actions_for(env, count, seed=seed), seed=seed)


def _expect(is_met: Any, message: str) -> None:
    if not is_met:
        raise CheckFailedError(message)
