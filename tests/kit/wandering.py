"""A small stochastic policy: it asks for names it has seen, reads, and answers with one of them.

It plays several episodes in turns, one turn each, and writes down its tokens, which are bytes.
"""

import json
import re

import numpy as np

from seekgym.agents.policy import Policy
from seekgym.agents.rollouts import Reply, Segment

NAME = re.compile(r"\w*[A-Z0-9]\w*")
ID = re.compile(r"^(?:\d+\. )?\[([^\]\n]+)\]", re.MULTILINE)
WRITTEN = {
    "search-r1": lambda name, value: f"<think>so</think><{name}>{value}</{name}>",
    "hermes": lambda name, value: f"<tool_call>{json.dumps(call(name, value))}</tool_call>",
    "react": lambda name, value: f"Thought: so\nAction: {name}[{' '.join(value.split())}]",
}
ARGUMENTS = {"search": "query", "read": "document_id", "answer": "text"}


class WanderingPolicy(Policy):
    """Draws what it does from what it has seen.

    Args:
        protocol: The text protocol; None for tool calls.
        at_once: How many episodes it plays in turns.
        cuts: How often a reply is cut off.
        odd: How often it writes a lone surrogate, or what is no call.
        stops: How likely it answers in each turn.
    """

    name = "wandering"

    def __init__(self, protocol=None, *, at_once=4, cuts=0.0, odd=0.0, stops=0.25):
        self.protocol = protocol
        self.at_once = at_once
        self.cuts = cuts
        self.odd = odd
        self.stops = stops

    def play(self, episodes):
        running = []
        while True:
            while len(running) < self.at_once and (episode := next(episodes, None)) is not None:
                running.append(_Wanderer(self, episode))
            if not running:
                return
            for each in list(running):
                if not each.take_turn():
                    running.remove(each)
                    yield each.finish()


class _Wanderer:
    def __init__(self, policy, episode):
        self.policy = policy
        self.episode = episode
        self.draw = episode.generator
        self.seen = episode.question
        self.segments = list(episode.shared_segments)
        self.ids, self.mask, self.log_probs = [], [], []
        if self.segments:
            last = self.segments.pop()
            self.ids, self.mask, self.log_probs = map(list, (last.ids, last.mask, last.log_probs))
        else:
            self.read(episode.system_prompt + episode.question)
        self.seen += "".join(turn.observation for turn in episode.turns)

    def read(self, text):
        new = text.encode("utf-8", "replace")
        self.ids += new
        self.mask += [0] * len(new)
        self.log_probs += [0.0] * len(new)

    def take_turn(self):
        if not self.episode.may_go_on:
            return False
        action = self.choose()
        is_cut = self.draw.random() < self.policy.cuts
        text = action if isinstance(action, str) else json.dumps(action, sort_keys=True)
        if is_cut and isinstance(action, str):
            action = text = text[: len(text) // 2]
        new = text.encode("utf-8", "replace")
        start = len(self.ids)
        self.ids += new
        self.mask += [1] * len(new)
        self.log_probs += [-float(x) for x in self.draw.random(len(new))]
        span = (len(self.segments), start, len(self.ids))
        observation = self.episode.send(
            Reply(action, finish="length" if is_cut else "stop", span=span)
        )
        if not self.episode.is_over:
            self.read(self.episode.turns[-1].observation)
            self.seen += "\n" + self.episode.turns[-1].observation
        return observation is not None

    def choose(self):
        if self.draw.random() < self.policy.odd:
            odd = ["<search>\ud83c</search>", "\udcb0", "", "no call", {"name": "read"}]
            return odd[self.draw.integers(len(odd))]
        names = NAME.findall(self.seen) or ["x"]
        ids = ID.findall(self.seen)
        chance = self.draw.random()
        if chance < self.policy.stops:
            return self.say("answer", self.pick(names))
        if ids and chance < 0.5 and self.policy.protocol != "search-r1":
            return self.say("read", self.pick(ids))
        return self.say("search", f"{self.pick(names)} {self.pick(names)}")

    def pick(self, values):
        return values[int(self.draw.integers(len(values)))]

    def say(self, name, value):
        if self.policy.protocol is None:
            return call(name, value)
        return WRITTEN[self.policy.protocol](name, value)

    def finish(self):
        segment = Segment(tuple(self.ids), tuple(self.mask), tuple(self.log_probs))
        return self.episode.finish([*self.segments, segment])


class Dying(WanderingPolicy):
    """Kills its own process the first time it comes to some episode.

    Args:
        mark: A file that says that it died already; None to die each time.
    """

    def __init__(self, mark, at=5):
        super().__init__()
        self.mark = mark
        self.at = at

    def play(self, episodes):
        return super().play(self.watch(episodes))

    def watch(self, episodes):
        import os
        import signal

        for episode in episodes:
            if episode.plan.order == self.at and not (self.mark and os.path.exists(self.mark)):
                if self.mark:
                    open(self.mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield episode


def call(name, value):
    return {"name": name, "arguments": {ARGUMENTS[name]: value}}


def lines(trajectories):
    """Return trajectories as they are written: what is compared byte for byte."""
    return [trajectory.to_json() for trajectory in trajectories]


def seeded(seed):
    return np.random.default_rng(np.random.SeedSequence([seed]))
