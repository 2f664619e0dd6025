"""Environments that are wrong in exactly one way each, with the check that must see it."""

import threading
from functools import partial
from itertools import count
from typing import ClassVar

import numpy as np
from gymnasium.spaces import Text
from gymnasium.wrappers import OrderEnforcing

from seekgym.corpora.errors import BackendError
from seekgym.envs import ProtocolError, QAEnv, SearchVectorEnv
from seekgym.envs.spaces import ToolCalls
from seekgym.envs.wrappers import Features, Menu
from seekgym.testing import Case


class ReusesItsInfo(QAEnv):
    shared: ClassVar[dict] = {}

    def _info(self, episode, outcome=None):
        self.shared.clear()
        self.shared.update(super()._info(episode, outcome))
        return self.shared


class ObservesTooMuch(QAEnv):
    def _fit(self, text, ending=""):
        return super()._fit(text, ending).ljust(self.rules.max_observation_chars + 1)


class SamplesNonsense(QAEnv):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.action_space = _Nonsense(self.action_space.tools)


class _Nonsense(ToolCalls):
    def sample(self, mask=None, probability=None):
        return {"name": "no such tool", "arguments": {}}


class LeaksGold(QAEnv):
    def _info(self, episode, outcome=None):
        return super()._info(episode, outcome) | {"gold_answers": episode.task.answers}


class ForgetsAKey(QAEnv):
    def _info(self, episode, outcome=None):
        info = super()._info(episode, outcome)
        del info["searches"]
        return info


class RaisesOnNonsense(QAEnv):
    def step(self, action):
        action["name"].upper()
        return super().step(action)


class IgnoresNonsense(QAEnv):
    def step(self, action):
        step = super().step(action)
        step[4]["error"] = None
        return step


class PaysBesideTheTerms(QAEnv):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + 1e-9, terminated, truncated, info


class PaysOutOfRange(QAEnv):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.reward_range = (0.5, 1.0)


class NeverEnds(QAEnv):
    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        self._episode.is_over = terminated
        return observation, reward, terminated, False, info


class EndsTwice(QAEnv):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, truncated, info


class GoesOnAfterTheEnd(QAEnv):
    def _running(self):
        return self._begun()


class HidesFailures(QAEnv):
    def finish(self, pending, rankings):
        return super().finish(pending, [[]] if isinstance(rankings, BackendError) else rankings)


class ScoresFailures(QAEnv):
    def _fail(self, episode):
        step = super()._fail(episode)
        step[4]["exact_match"] = 0.0
        return step


class Undocumented(QAEnv):
    """Answer questions."""


class DrawsFromTheGlobalGenerator(QAEnv):
    def _draw(self, options):
        return self.tasks[int(np.random.randint(len(self.tasks)))]


class AlwaysDrawsTheSame(QAEnv):
    def _draw(self, options):
        return self.tasks[0]


class SharesItsQueries(QAEnv):
    asked = count()

    def step(self, action):
        observation, *rest = super().step(action)
        return (f"{observation[:500]} {next(self.asked)}", *rest)


class HoldsALock(QAEnv):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.lock = threading.Lock()


class ForgetsWhenCopied(QAEnv):
    def __getstate__(self):
        return self.__dict__ | {"_np_random": None}

    def __deepcopy__(self, memo):
        copied = type(self)()
        copied.restore(self.snapshot())
        copied._episode.documents.clear()
        return copied


class SharesItsSnapshots(QAEnv):
    def restore(self, state):
        super().restore(state)
        self._episode = state.episode


class SnapshotsTheCorpus(QAEnv):
    def snapshot(self):
        self._begun().queries["corpus"] = tuple(self.corpus)
        return super().snapshot()


class DependsOnHashOrder(QAEnv):
    def _fit(self, text, ending=""):
        return super()._fit(f"{hash('x')} {text}", ending)


class ObservesGymnasiumText(QAEnv):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.observation_space = Text(self.rules.max_observation_chars, min_length=0)


class _SwapsItsRewards(SearchVectorEnv):
    def step(self, actions):
        observations, *rest = super().step(actions)
        return (observations[::-1], *rest)


class _HasTheWrongMode(SearchVectorEnv):
    def __init__(self, env, num_envs, autoreset_mode):
        super().__init__(env, num_envs, autoreset_mode=autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": None}


class PromisesTooMuch(QAEnv):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.best_return = 2.0


class PaysForAnything(QAEnv):
    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        is_over = terminated or truncated
        return observation, float(is_over), terminated, truncated, info


class ForgetsHowItWent(QAEnv):
    numbers = count()

    def _identity(self):
        return super()._identity() | {"made": next(self.numbers)}


class _GoldMenu(Menu):
    def _make(self):
        stop = super()._make()[-1]
        gold = self._answer(self.search_env.task.answers[0], "answer", None, self._seen())
        return [gold, stop]


class _UnsortedMenu(Menu):
    def _make(self):
        return super()._make()[::-1]


class _OpenMenu(Menu):
    def action_masks(self):
        return np.ones(self.size, dtype=bool)


class _LenientMenu(Menu):
    def _call(self, action):
        call = super()._call(action)
        return self.choices()[-1].call if isinstance(call, ProtocolError) else call


class _TwiceMenu(Menu):
    def _make(self):
        made = super()._make()
        return [*made, made[-1]._replace(label="stop unknown again")]


class _DeadMenu(Menu):
    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        return observation, info | {"action_mask": np.zeros(self.size, dtype=np.int8)}


class _HashedFeatures(Features):
    def features(self):
        features = super().features()
        features[0] = hash("x") % 1_000 / 1_000
        return features


def _make_hashed():
    return _HashedFeatures(Menu(OrderEnforcing(QAEnv())))


def menus_of(*kinds):
    return [Case(partial(_make_menu, kind)) for kind in kinds]


def _make_menu(kind):
    return Features(kind(OrderEnforcing(QAEnv())))


def make_swapped(num_envs, autoreset_mode):
    return _SwapsItsRewards(QAEnv(), num_envs, autoreset_mode=autoreset_mode)


def make_wrong_mode(num_envs, autoreset_mode):
    return _HasTheWrongMode(QAEnv(), num_envs, autoreset_mode)


WRONG = {
    "gymnasium": [Case(ReusesItsInfo)],
    "spaces": [Case(ObservesTooMuch), Case(SamplesNonsense)],
    "info": [Case(LeaksGold), Case(ForgetsAKey)],
    "hostile_actions": [Case(RaisesOnNonsense), Case(IgnoresNonsense)],
    "rewards": [Case(PaysBesideTheTerms), Case(PaysOutOfRange)],
    "ends": [Case(NeverEnds), Case(EndsTwice), Case(GoesOnAfterTheEnd)],
    "backend_failure": [Case(HidesFailures), Case(ScoresFailures)],
    "documentation": [Case(Undocumented)],
    "determinism": [Case(DrawsFromTheGlobalGenerator), Case(AlwaysDrawsTheSame)],
    "interleaving": [Case(SharesItsQueries)],
    "copies": [Case(HoldsALock), Case(ForgetsWhenCopied)],
    "snapshots": [Case(SharesItsSnapshots), Case(SnapshotsTheCorpus)],
    "threads": [Case(SharesItsQueries)],
    "processes": [Case(DependsOnHashOrder)],
    "async_vector": [Case(DependsOnHashOrder)],
    "shared_memory": [Case(ObservesGymnasiumText), Case(_make_hashed)],
    "own_vector": [Case(QAEnv, make_swapped), Case(QAEnv, make_wrong_mode)],
    "oracle": [Case(PromisesTooMuch)],
    "random": [Case(PaysForAnything)],
    "replay": [Case(ForgetsHowItWent)],
    "menu": menus_of(_GoldMenu, _UnsortedMenu, _OpenMenu, _LenientMenu, _TwiceMenu, _DeadMenu),
}
