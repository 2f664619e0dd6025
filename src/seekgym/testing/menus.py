"""Checks of what a menu of choices promises."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..corpora.errors import SeekgymError
from ..envs.wrappers.menu import Menu, find_menu
from .probe import Case, CheckFailedError

__all__ = ["check_menu"]

_EPISODES = 12
_OTHER = "Nobody Whatsoever"


def check_menu(case: Case) -> None:
    """A menu's choices are legal, ordered, each of its own meaning, and know no gold."""
    env = case.make()
    menu = find_menu(env)
    if menu is None:
        return
    generator = np.random.default_rng(0)
    for seed in range(_EPISODES):
        _, info = env.reset(seed=seed)
        is_over = False
        while not is_over:
            _check_choices(menu, info)
            _check_gold(menu)
            count = len(menu.choices())
            is_illegal = count < menu.size and generator.random() < 0.2
            place = count if is_illegal else int(generator.integers(count))
            kind = "" if is_illegal else menu.choices()[place].kind
            _, _, terminated, truncated, info = env.step(place)
            is_over = terminated or truncated
            wrong = info["error"] == "no_choice"
            _expect(wrong == is_illegal, f"place {place} of {count} gave {info['error']!r}")
            ends = kind in ("answer", "stop")
            _expect(terminated == ends, f"a choice of kind {kind!r} ended the episode or did not")
        _expect(not info["action_mask"].any(), "there is a choice after the end")


def _check_choices(menu: Menu, info: dict[str, Any]) -> None:
    labels, choices = menu.labels(), menu.choices()
    mask = menu.action_masks()
    _expect(0 < len(choices) <= menu.size, f"{len(choices)} choices for {menu.size} places")
    _expect(labels == sorted(labels), f"the labels are in no order: {labels}")
    _expect(len(set(labels)) == len(labels), f"a label stands twice: {labels}")
    calls = [repr(choice.call).casefold() for choice in choices]
    _expect(len(set(calls)) == len(calls), "two choices are the same call")
    _expect(
        mask.shape == (menu.size,) and mask.dtype == np.bool_ and mask.sum() == len(labels),
        "action_masks() does not fit the labels",
    )
    _expect(np.array_equal(info["action_mask"], mask), "info['action_mask'] differs")
    _expect(menu.action_space.contains(len(choices) - 1), "a choice has no place in the space")


def _check_gold(menu: Menu) -> None:
    """The choices stay the same where the gold answers, the evidence and the proof are others."""
    inner = menu.search_env
    labels, state = menu.labels(), inner.snapshot()
    task = replace(inner.task, answers=(_OTHER,), evidence=(), proof=())
    try:
        inner.restore(replace(state, episode=replace(state.episode.copy(), task=task)))
        found = menu.labels()
    except SeekgymError as error:
        raise CheckFailedError(f"no menu without gold: {error}") from None
    finally:
        inner.restore(state)
    _expect(found == labels, f"the choices depend on gold: {labels} / {found}")


def _expect(is_met: Any, message: str) -> None:
    if not is_met:
        raise CheckFailedError(message)
