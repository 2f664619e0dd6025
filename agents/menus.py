"""How an agent that sees the gold answers plays a menu: the best that the menu allows."""

from collections.abc import Iterator

from ..envs.scoring import score_answer
from ..envs.wrappers.menu import Menu, MenuChoice

__all__ = ["choose_by_gold"]


def choose_by_gold(menu: Menu) -> int:
    """Return the number of the choice that answers right, or leads there soonest.

    A choice is tried in the environment, which then goes back to where it was. The best is one
    after which the menu holds the right answer; then one that shows evidence not seen before, or
    after which evidence can be opened; then the search whose name the question's words have led
    to. What no choice leads to, the menu does not allow: on the last turn the answer is "unknown".
    """
    choices = menu.choices()
    right = _right(menu, choices)
    if right is not None:
        return right
    inner = menu.search_env
    best, place = (-1.0, 0.0), len(choices) - 1
    if inner.episode.turn + 1 < inner.rules.max_turns:
        for number, value in _values(menu, choices):
            if value > best:
                best, place = value, number
            if best[0] == _FOUND:
                break
    return place


_FOUND = 3.0


def _right(menu: Menu, choices: tuple[MenuChoice, ...]) -> int | None:
    """Return the number of the choice that gives the right answer, or None."""
    task, rules = menu.search_env.task, menu.search_env.rules
    for number, choice in enumerate(choices):
        if choice.kind == "answer":
            scores = score_answer(
                choice.call["arguments"]["text"],
                task.answers,
                is_answer_set=task.is_answer_set,
                convention=rules.convention,
            )
            if scores.exact_match == 1:
                return number
    return None


def _values(
    menu: Menu, choices: tuple[MenuChoice, ...]
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Give what each search and each opening is worth, those with most progress first."""
    inner = menu.search_env
    tried = [(c.lead.progress, -n, c) for n, c in enumerate(choices) if c.lead and _leads_on(c)]
    missing = set(inner.task.evidence) - inner.episode.documents.keys()
    titles = {inner.corpus[document].title for document in missing}
    state = inner.snapshot()
    for progress, negative, choice in sorted(tried, key=lambda row: row[:2], reverse=True):
        _, _, terminated, truncated, info = inner.step(choice.call)
        worth = 0.0
        if not (terminated or truncated):
            after = menu.choices()
            if _right(menu, after) is not None:
                worth = _FOUND
            elif missing & set(info["documents"]):
                worth = 2.0
            elif any(c.kind == "open" and c.lead and c.lead.text in titles for c in after):
                worth = 1.0
        inner.restore(state)
        yield -negative, (worth, progress)


def _leads_on(choice: MenuChoice) -> bool:
    return choice.kind in ("search", "open")
