"""A wrapper that offers a menu: a few numbered choices in place of free tool calls."""

import operator
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from ...corpora.errors import ConfigurationError
from ..actions import ProtocolError, ToolCall
from ..base import SearchEnv
from ..episode import Call, Episode
from ..leads import Lead, find_leads, question_names, relation_words
from ..menu_tools import Link, MenuTools
from ..rules import check_at_least
from ..scoring import normalize
from ..spaces import FreeText
from ..summaries import Sentence, content_words

__all__ = ["Kind", "Menu", "MenuChoice", "find_menu"]

Kind = Literal["answer", "open", "search", "stop"]

_LEAST_SIZE = 4
_LABEL_CHARS = 120
_YES_NO = frozenset("are can did do does had has have is was were".split())


class MenuChoice(NamedTuple):
    """One choice.

    Attributes:
        label: What it is, for people; menus are in the order of their labels.
        kind: What it does: ``answer``, ``open``, ``search``, or ``stop``, the answer "unknown".
        call: The tool call that it stands for.
        lead: The name or value that it is about; None for ``stop``.
        is_seen: Whether the document of that name was shown.
        is_relation: Whether it is a search that says what of the name is asked.
    """

    label: str
    kind: Kind
    call: ToolCall
    lead: Lead | None = None
    is_seen: bool = False
    is_relation: bool = False


class _Seen(NamedTuple):
    """What an episode has shown and done so far."""

    question: str
    sentences: dict[Sentence, int]  # with the turn in which each was read first
    links: tuple[Link, ...]
    made: frozenset[tuple[Any, ...]]  # the calls, normalised
    opened: tuple[str, ...]
    titles: frozenset[str]


class Menu(gym.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Offers at most ``size`` choices, as ``Discrete(size)`` with a mask.

    After Harness-G (arXiv:2607.27652): a policy that writes its queries finds many words for one
    result, and learns little from comparing them; a finite choice of actions has no such aliases.
    The choices are made from the question and from what the episode has shown, never from gold:
    search for a name of the question or one that was read, alone or with the word of the question
    that comes next; open a document that was shown; answer with a name or value that was read;
    stop with "unknown". Choices of equal meaning are one choice, what was done is not offered
    again, and the order is that of the alphabet, so that a place says nothing.

    Observation: the environment's text, then the numbered choices.

    Actions: the number of a choice, from 0. Another number, or anything else, is an invalid move
    of the game: it costs a turn, and the observation says what would be right.

    ``action_masks()`` says which numbers stand for a choice, as MaskablePPO of sb3-contrib asks
    for it, and so does ``info["action_mask"]``; ``labels()`` says what they stand for.

    Args:
        env: A search environment that says how a menu speaks its tools (``menu_tools``).
        size: The most choices, at least 4.

    Raises:
        ConfigurationError: The environment has no ``menu_tools``, or ``size`` is too small.
    """

    def __init__(self, env: gym.Env[str, Any], size: int = 24) -> None:
        RecordConstructorArgs.__init__(self, size=size)
        gym.Wrapper.__init__(self, env)
        inner = env.unwrapped
        if not isinstance(inner, SearchEnv) or inner.menu_tools is None:
            raise ConfigurationError(
                f"{type(inner).__name__} does not say how a menu speaks its tools; set its class "
                "attribute menu_tools to a seekgym.envs.menu_tools.MenuTools"
            )
        check_at_least("size", size, _LEAST_SIZE)
        self.size = size
        self.search_env: SearchEnv = inner
        self._tools: MenuTools = inner.menu_tools
        self.action_space = Discrete(size)
        room = size * (_LABEL_CHARS + 8) + 20
        self.observation_space = FreeText(inner.rules.max_observation_chars + room)
        self._made_for: tuple[Episode, int] | None = None
        self._choices: tuple[MenuChoice, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Return the question and the first choices."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_choices(observation), self._with_mask(info)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Make a choice."""
        made = self._call(action)
        observation, reward, terminated, truncated, info = self.env.step(made)
        return (
            self._with_choices(observation),
            float(reward),
            terminated,
            truncated,
            self._with_mask(info),
        )

    def choices(self) -> tuple[MenuChoice, ...]:
        """Return the choices of this turn; none before an episode and after its end.

        They are those of the episode as it stands, a restored one too.
        """
        inner = self.search_env
        if not inner.has_episode or inner.episode.is_over:
            return ()
        episode = inner.episode
        if self._made_for is None or self._made_for[0] is not episode:
            self._made_for = None
        if self._made_for is None or self._made_for[1] != episode.turn:
            self._choices = tuple(self._make())
            self._made_for = (episode, episode.turn)
        return self._choices

    def labels(self) -> list[str]:
        """Return what each choice is, in order."""
        return [choice.label for choice in self.choices()]

    def action_masks(self) -> np.ndarray:
        """Return which numbers stand for a choice: booleans, shape (size,)."""
        return np.arange(self.size) < len(self.choices())

    def _call(self, action: Any) -> ToolCall | ProtocolError:
        choices = self.choices()
        try:
            place = operator.index(action)
        except Exception:  # looking at an object may fail
            place = -1
        if not 0 <= place < len(choices):
            reason = f"That is no choice; choose a number from 0 to {len(choices) - 1}."
            return ProtocolError("no_choice", reason)
        return choices[place].call

    def _with_choices(self, observation: str) -> str:
        choices = self.choices()
        if not choices:
            return observation
        lines = (f"{place}. {choice.label}" for place, choice in enumerate(choices))
        return "\n".join((f"{observation}\n\nChoices:", *lines))

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        info["action_mask"] = self.action_masks().astype(np.int8)
        return info

    def _make(self) -> list[MenuChoice]:
        seen = self._seen()
        leads = find_leads(seen.question, seen.sentences, is_prose=self._tools.asks_relations)
        inner = self.search_env
        may_search = not inner.rules.is_answer_turn(inner.episode.turn + 1)
        stop = self._answer("unknown", "stop", None, seen)
        most_answers = (self.size - 1) * 5 // 12 if may_search else self.size - 1
        most_links = (self.size - 1) // 5
        answers = _first(self._answers(seen, leads), most_answers, but=_key(stop.call))
        links = _first(self._opens(seen, leads), most_links) if may_search else []
        room = self.size - 1 - len(answers) - len(links)
        searches = _first(self._searches(seen, leads), room) if may_search else []
        return sorted((*answers, *links, *searches, stop), key=lambda choice: choice.label)

    def _seen(self) -> _Seen:
        """Return what the episode has shown, from its messages."""
        question, turn = "", 0
        sentences: dict[Sentence, int] = {}
        links: dict[Link, None] = {}
        made, opened = set(), []
        for message in self.search_env.episode.messages:
            if isinstance(message, Call):
                call: ToolCall = {"name": message.name, "arguments": dict(message.arguments)}
                made.add(_key(call))
                opened += [str(v) for v in call["arguments"].values()]
            elif message.source == "environment":
                if not turn:
                    question = message.text
                else:
                    reading = self._tools.read(message.text)
                    for sentence in reading.sentences:
                        if sentence.title:  # what has none was said by the environment itself
                            sentences.setdefault(sentence, turn)
                    links.update(dict.fromkeys(reading.links))
                turn += 1
        titles = frozenset(sentence.title for sentence in sentences)
        shown = [link.address for link in links if link.address in set(opened)]
        return _Seen(question, sentences, tuple(links), frozenset(made), tuple(shown), titles)

    def _answers(self, seen: _Seen, leads: Sequence[Lead]) -> Iterator[MenuChoice]:
        words = seen.question.split(maxsplit=1)
        if words and words[0].lower() in _YES_NO:
            for text in ("no", "yes"):
                yield self._answer(text, "answer", Lead(text, False, False, 0.0, 0), seen)
        is_choice = " or " in seen.question
        for lead in leads:
            if not lead.is_asked or (is_choice and lead.text in question_names(seen.question)):
                yield self._answer(lead.text, "answer", lead, seen)

    def _answer(self, text: str, kind: Kind, lead: Lead | None, seen: _Seen) -> MenuChoice:
        call = self._tools.answer(text, seen.opened)
        return MenuChoice(_label(kind, text), kind, call, lead, text in seen.titles)

    def _searches(self, seen: _Seen, leads: Sequence[Lead]) -> Iterator[MenuChoice]:
        for lead in leads:
            if not lead.is_name:
                continue
            word = relation_words(seen.question, lead.used) if self._tools.asks_relations else ""
            for asked in dict.fromkeys(("", word)):
                call = self._tools.search(lead.text, asked)
                if _key(call) not in seen.made:
                    label = _label("search", f"{lead.text} {asked}")
                    is_seen = lead.text in seen.titles
                    yield MenuChoice(label, "search", call, lead, is_seen, bool(asked))

    def _opens(self, seen: _Seen, leads: Sequence[Lead]) -> Iterator[MenuChoice]:
        by_text = {lead.text: lead for lead in leads}
        found = []
        for link in seen.links:
            lead = by_text.get(link.title)
            if lead is None:
                is_asked = link.title in seen.question
                lead = Lead(link.title, False, is_asked, 0.0, 0)
            call = self._tools.open(link)
            if _key(call) not in seen.made:
                part = f" (part {link.part})" if link.part > 1 else ""
                label = _label("open", f"{link.title}{part}")
                found.append(
                    MenuChoice(label, "open", call, lead, link.title in seen.titles and not part)
                )
        yield from sorted(found, key=lambda c: c.lead.order if c.lead else ())


def find_menu(env: gym.Env[Any, Any]) -> Menu | None:
    """Return the Menu among the wrappers of an environment, or None."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, Menu):
            return env
        env = env.env
    return None


def _first(
    choices: Iterator[MenuChoice], count: int, *, but: tuple[Any, ...] = ()
) -> list[MenuChoice]:
    """Return so many choices, each label once and each meaning once, but one not at all."""
    found: dict[tuple[Any, ...], MenuChoice] = {}
    labels: set[str] = set()
    for choice in choices:
        if len(found) >= count:
            break
        key = _key(choice.call)
        if key != but and key not in found and choice.label not in labels:
            found[key] = choice
            labels.add(choice.label)
    return list(found.values())


def _key(call: ToolCall) -> tuple[Any, ...]:
    """Return what calls of equal meaning share: words without meaning and their order left out."""
    name, arguments = call["name"], call["arguments"]
    if name == "answer":
        return name, normalize(str(arguments.get("text", "")))
    if name in ("search", "assign"):
        query = " ".join(str(value) for value in arguments.values())
        return name, frozenset(content_words(query)) or query
    return name, tuple(sorted((key, str(value)) for key, value in arguments.items()))


def _label(kind: str, text: str) -> str:
    """Return a line of the menu: one line, without control characters, of limited length."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return f"{kind} {plain}"[:_LABEL_CHARS]
