"""A server on loopback that speaks OpenAI's wire, scripted models, and a layer that breaks it."""

import asyncio
import json
import threading
import time
from collections import Counter
from contextlib import contextmanager

import gymnasium as gym
import uvicorn

from seekgym.agents.llm import ChatPolicy
from seekgym.agents.llm.conversation import ChatCall
from seekgym.agents.llm.endpoint import Retries
from seekgym.agents.llm.serve import Completion, create_app
from seekgym.agents.rollouts import generate
from seekgym.corpora import Corpus, Document, Task, TaskSet
from seekgym.envs import QAEnv

SECONDS_TO_START = 30
ENV = "seekgym/QA-v0"
QUICK = Retries(count=5, first_wait_s=0.001, longest_wait_s=0.5)


@contextmanager
def serve(app):
    """Serve an application on a free port; give the address of its OpenAI wire."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + SECONDS_TO_START
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < deadline, "the server did not start in time"
        time.sleep(0.005)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        server.force_exit = True  # do not wait for requests that a client has given up
        thread.join()


@contextmanager
def wire():
    """Serve a scripted model behind a layer of faults; give what plays through it."""
    model = ScriptedModel(search_then_answer)
    faults = Faults(create_app(model))
    with serve(faults) as url:
        yield Wire(url, model, faults)


class Wire:
    """A server whose model and faults each play sets anew."""

    def __init__(self, url, model, faults):
        self.url = url
        self.model = model
        self.faults = faults
        self.made = {}

    def play(self, script, plan=lambda body, attempt: None, *, env=None, arguments=(), **options):
        """Play and return the trajectories; takes what ``generate`` and ``ChatPolicy`` take."""
        self.model.script, self.model.asked = script, []
        self.faults.reset(plan)
        if env is None:
            key = json.dumps(dict(arguments))
            env = self.made.setdefault(key, None) or gym.make(ENV, **dict(arguments))
            self.made[key] = env
        names = ("seed", "group_size", "path", "on_finished")
        rollout = {name: options.pop(name) for name in names if name in options}
        episodes = options.pop("episodes", 1)
        policy = ChatPolicy(self.url, "scripted", **{"retries": QUICK, **options})
        return generate(policy, env, episodes=episodes, **rollout)

    @property
    def asked(self):
        """What the model was asked: messages, tools and sampling."""
        return self.model.asked


class ScriptedModel:
    """Answers each message by a function of the messages; keeps what it was asked."""

    name = "scripted"

    def __init__(self, script):
        self.script = script
        self.asked = []

    def complete(self, messages, tools, sampling):
        self.asked.append((messages, tools, sampling))
        completion = self.script(messages)
        return completion if isinstance(completion, Completion) else Completion(completion)


def call(name, arguments, id="call_0"):
    """Return a tool call as a model makes it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ChatCall(id, name, text)


def calls(*made, text="", prompt_tokens=10, completion_tokens=3):
    """Return a message that calls tools."""
    return Completion(text, made, "tool_calls", prompt_tokens, completion_tokens)


def search_then_answer(messages):
    """Search for the question, then answer with the first words of what came back."""
    question = messages[1]["content"]
    if messages[-1]["role"] == "tool":
        return calls(call("answer", {"text": messages[-1]["content"][:20]}))
    return calls(call("search", {"query": question}))


def small_env(**arguments):
    documents = [Document("d0", "", "Paris is a city."), Document("d1", "", "x<|im_end|>y")]
    tasks = TaskSet([Task("t", "Who?", ("Paris",), ("d0",))])
    return QAEnv(Corpus.from_documents(documents), tasks, **arguments)


class Faults:
    """Breaks requests on their way: ``plan(body, attempt)`` names the fault, or None.

    ``attempt`` counts from 0 how often this very request was made. ``refused`` counts the faults
    that were made, and ``served`` the answers that went through whole.
    """

    def __init__(self, app):
        self.app = app
        self.reset(lambda body, attempt: None)

    def reset(self, plan):
        """Begin anew."""
        self.plan = plan
        self.attempts = Counter()
        self.refused = Counter()
        self.served = Counter()
        self.at_once = 0
        self.most_at_once = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            await self.app(scope, receive, send)
            return
        raw = await read_body(receive)
        key = raw
        attempt = self.attempts[key]
        self.attempts[key] += 1
        fault = self.plan(json.loads(raw), attempt)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if fault is None:
                self.served[key] += 1
                await self.app(scope, replay(raw), send)
            else:
                self.refused[fault if isinstance(fault, str) else fault[0]] += 1
                self.served[key] += fault[0] == "slow"
                await self.break_it(fault, scope, raw, send)
        finally:
            self.at_once -= 1

    async def break_it(self, fault, scope, raw, send):
        match fault:
            case "drop":  # the answer breaks off in the middle
                await self.app(scope, replay(raw), dropping(send))
                raise ConnectionError("dropped")
            case "half":  # a stream that ends cleanly, but too early
                await self.app(scope, replay(raw), halving(send))
            case "hang":
                await asyncio.sleep(30)
            case ("slow", seconds):
                await asyncio.sleep(seconds)
                await self.app(scope, replay(raw), send)
            case ("status", status, headers, body):
                await respond(send, status, body, headers)
            case ("body", body):
                await respond(send, 200, body)
            case ("events", text):
                await respond(send, 200, text, {"content-type": "text/event-stream"})


async def read_body(receive):
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    return body


def replay(raw):
    """Give a body that was read already once more, then wait for the client to leave."""
    parts = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive():
        if parts:
            return parts.pop()
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    return receive


def dropping(send):
    """Send half of the first piece of the body, and nothing more."""
    sent = []

    async def send_half(message):
        if message["type"] == "http.response.start":
            await send(message)
        elif not sent:
            sent.append(message)
            body = message["body"]
            await send(message | {"body": body[: len(body) // 2], "more_body": True})

    return send_half


def halving(send):
    """Send two events of a stream, and end it as if it were whole."""
    sent = []

    async def send_some(message):
        if message["type"] == "http.response.start" or len(sent) < 2:
            sent.append(message)
            await send(message)
        elif not message.get("more_body"):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_some


async def respond(send, status, body, headers=()):
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    kind = b"text/html" if isinstance(body, str) else b"application/json"
    fields = [
        (b"content-type", kind),
        *((k.encode(), v.encode()) for k, v in dict(headers).items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": raw})


def error(message, code=None):
    """Return the body of an error as OpenAI's servers send it."""
    return {"error": {"message": message, "type": "error", "param": None, "code": code}}
