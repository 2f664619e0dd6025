"""A real model of transformers behind the real wire, and what its server says to clients."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import gymnasium as gym
import pytest

if not all(map(importlib.util.find_spec, ("openai", "fastapi", "torch", "transformers"))):
    pytest.skip("needs the extras llm and serve", allow_module_level=True)

import httpx2
import openai
from loopback import ENV, call, serve
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from seekgym.agents.llm import ChatPolicy
from seekgym.agents.llm.chat_model import TransformersChatModel, parse_calls
from seekgym.agents.llm.serve import RefusedError, Sampling, create_app
from seekgym.agents.rollouts import generate, read_trajectories, replay
from seekgym.cli.serving import serve_model
from seekgym.corpora import ConfigurationError

SECONDS_TO_DIE = 60
TOOL_TEMPLATE = (
    "{% if tools %}{% for tool in tools %}<|tool|>{{ tool['function']['name'] }}\n{% endfor %}"
    "{% endif %}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% for c in m['tool_calls'] or [] %}<|call|>{{ c['function']['arguments']['query'] }}"
    "{% endfor %}{% endfor %}<|assistant|>"
)
CHILD = """
import sys
from seekgym.agents.llm import ChatPolicy
from seekgym.agents.rollouts import generate

url, path, episodes = sys.argv[1], sys.argv[2], int(sys.argv[3])
policy = ChatPolicy(url, "llama", protocol="search-r1", max_tokens=4, concurrency=4)
arguments = {"max_turns": 2}
generate(policy, "seekgym/QA-v0", episodes=episodes, group_size=2, arguments=arguments, path=path)
"""


def byte_tokenizer():
    """Train a byte-level tokenizer on the texts of an environment."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [document.text for document in gym.make(ENV).unwrapped.corpus[:50]]
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>"
    )


def tiny_llama(tokenizer):
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


@pytest.fixture(scope="module")
def model():
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        tokenizer = byte_tokenizer()
        return TransformersChatModel(tiny_llama(tokenizer), tokenizer, name="llama")


@pytest.fixture(scope="module")
def url(model):
    with serve(create_app(model)) as url:
        yield url


@pytest.fixture
def client(url):
    with openai.OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        yield client


def ask(client, text="Hello", **options):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="llama", messages=messages, **options)


@pytest.mark.parametrize("protocol", ["tools", "search-r1", "hermes", "react"])
def test_a_real_model_plays_the_same_however_many_at_once_and_streamed_or_not(url, protocol):
    def played(**options):
        policy = ChatPolicy(url, "llama", protocol=protocol, max_tokens=4, **options)
        arguments = {"max_turns": 2}
        return generate(policy, ENV, episodes=4, group_size=2, arguments=arguments)

    one_by_one = played(concurrency=1)
    assert [t.to_json() for t in played()] == [t.to_json() for t in one_by_one]
    assert [t.to_json() for t in played(stream=True)] == [t.to_json() for t in one_by_one]
    assert len({t.turns[0].action["text"] for t in one_by_one}) == 4
    for trajectory in one_by_one:
        assert trajectory.usage["completion_tokens"] == 8
        assert trajectory.usage["prompt_tokens"] > 100
        assert {turn.finish for turn in trajectory.turns} == {"length"}
        assert replay(trajectory) == []


def test_a_run_over_the_wire_that_is_killed_goes_on(url, tmp_path):
    path = tmp_path / "run.jsonl"
    arguments = [sys.executable, "-P", "-c", CHILD, url, str(path)]
    child = subprocess.Popen([*arguments, "200"])
    deadline = time.monotonic() + SECONDS_TO_DIE
    while not path.exists() or path.read_bytes().count(b"\n") < 5:
        assert time.monotonic() < deadline, "the run did not begin"
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    kept = path.read_bytes()
    assert 5 <= kept.count(b"\n") < 200
    path.write_bytes(kept[:-7])  # as if it was killed in the middle of a line
    episodes = 2 * (kept.count(b"\n") // 2 + 3)
    assert subprocess.run([*arguments, str(episodes)]).returncode == 0
    policy = ChatPolicy(url, "llama", protocol="search-r1", max_tokens=4)
    whole = generate(policy, ENV, episodes=episodes, group_size=2, arguments={"max_turns": 2})
    resumed = {t.id: t.to_json() for t in read_trajectories(path)}
    assert path.read_bytes().count(b"\n") == episodes
    assert resumed == {t.id: t.to_json() for t in whole}


def test_the_wire_is_that_of_the_official_client(client):
    assert [model.id for model in client.models.list()] == ["llama"]
    whole = ask(client, seed=1, max_tokens=5)
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens == 5
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + 5
    with ask(client, seed=1, max_tokens=5, stream=True) as stream:
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "length"


def test_a_seed_decides_and_without_temperature_nothing_is_drawn(client):
    def written(**options):
        return ask(client, max_tokens=8, **options).choices[0].message.content

    assert written(seed=1) == written(seed=1) != written(seed=2)
    assert written(temperature=0, seed=1) == written(temperature=0, seed=2)


def test_a_stop_string_ends_a_reply_and_is_no_part_of_it(client):
    text = ask(client, seed=3, max_tokens=20).choices[0].message.content
    stop = text[len(text) // 2 :][:2]
    cut = ask(client, seed=3, max_tokens=20, stop=stop)
    assert cut.choices[0].message.content == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    assert cut.usage.completion_tokens < 20


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "not JSON"),
        (b"[]", 400, "must be an object"),
        ({"model": "gpt"}, 404, "no model 'gpt' here; there is 'llama'"),
        ({}, 400, "at least one message"),
        ({"messages": "x"}, 400, "messages must be a list of objects"),
        ({"messages": [{}], "max_tokens": 0}, 400, "max_tokens must be"),
        ({"messages": [{}], "max_tokens": True}, 400, "max_tokens must be"),
        ({"messages": [{}], "stop": [""]}, 400, "stop must be"),
        ({"messages": [{}], "temperature": "hot"}, 400, "temperature must be"),
        ({"messages": [{}], "seed": 0.5}, 400, "seed must be"),
        ({"messages": [{}], "tools": 3}, 400, "tools must be a list of objects"),
        ({"messages": [{}], "max_tokens": 5000}, 400, "maximum context length is 4096"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": 3}]}]},
            400,
            "tool call that cannot be read",
        ),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused_in_words(url, body, status, words):
    raw = body if isinstance(body, bytes) else json.dumps({"model": "llama", **body})
    answer = httpx2.post(f"{url}/chat/completions", content=raw)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_an_overflow_of_the_context_loses_its_episode_and_says_why(url):
    policy = ChatPolicy(url, "llama", max_tokens=4000, protocol="react")
    [trajectory] = generate(policy, ENV, episodes=1, arguments={"max_turns": 3})
    assert trajectory.outcome["valid"] is False
    assert "maximum context length is 4096" in trajectory.outcome["reason"]


def test_templates_with_a_place_for_tools_get_them_and_others_get_words():
    tokenizer = byte_tokenizer()
    schema = {"type": "function", "function": {"name": "search", "parameters": {}}}
    function = {"name": "search", "arguments": '{"query": "x"}'}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
        {"role": "tool", "content": "found", "tool_call_id": "1"},
    ]
    llama = TransformersChatModel(tiny_llama(tokenizer), tokenizer, name="llama")
    plain = llama.lay_out(messages, [schema])
    assert plain.startswith("system: You may call tools.")
    assert '"name": "search"' in plain
    assert "Be brief.\nuser: Who?\nassistant: <tool_call>" in plain
    assert plain.endswith("user: <tool_response>\nfound\n</tool_response>\nassistant:")
    tokenizer.chat_template = TOOL_TEMPLATE
    assert llama.lay_out(messages, [schema]) == (
        "<|tool|>search\n<|system|>Be brief.<|user|>Who?<|assistant|><|call|>x<|tool|>found"
        "<|assistant|>"
    )
    tokenizer.chat_template = "{{ raise_exception('roles must take turns') }}"
    with pytest.raises(RefusedError, match="roles must take turns"):
        llama.complete(messages, [], Sampling())


@pytest.mark.parametrize(
    ("text", "rest", "found"),
    [
        ('<tool_call>{"name": "a", "arguments": {"q": 1}}</tool_call>', "", [("a", '{"q": 1}')]),
        ('I look <tool_call>\n{"name": "a"}', "I look", [("a", "{}")]),
        ('<tool_call>{"name": "a", "arguments": "{"}</tool_call>', "", [("a", "{")]),
        ("<tool_call>{</tool_call>", "<tool_call>{</tool_call>", []),
        ('<tool_call>{"name": 3}</tool_call>', '<tool_call>{"name": 3}</tool_call>', []),
        (
            '<tool_call>{"name": "a"}</tool_call><tool_call>{"name": "b"}</tool_call>',
            "",
            [("a", "{}"), ("b", "{}")],
        ),
        ("nothing", "nothing", []),
    ],
)
def test_calls_are_read_from_tags_and_what_is_none_stays_text(text, rest, found):
    made = tuple(
        call(name, arguments, f"call_{2 + n}") for n, (name, arguments) in enumerate(found)
    )
    assert parse_calls(text, 2) == (rest, made)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": "./nowhere", "port": 0}, "no such file or folder"),
        ({"model": "tiny", "port": 70000}, "port must be from 0 to 65535"),
        ({"model": "tiny", "port": 0, "host": "192.0.2.1"}, "cannot be used"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, words):
    with pytest.raises(ConfigurationError, match=words):
        serve_model(**{"host": "127.0.0.1", **arguments})


def test_the_command_serves_a_model(tmp_path):
    tokenizer = byte_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    tiny_llama(tokenizer).save_pretrained(tmp_path)
    arguments = ["serve-model", str(tmp_path), "--port", "0"]
    child = subprocess.Popen(
        [sys.executable, "-P", "-u", "-m", "seekgym", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = child.stdout.readline().split()[-1]
        assert url.startswith("http://127.0.0.1:")
        policy = ChatPolicy(url, str(tmp_path), max_tokens=4)
        [trajectory] = generate(policy, ENV, episodes=1, arguments={"max_turns": 2})
        assert trajectory.usage["completion_tokens"] == 8
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=SECONDS_TO_DIE)
    assert child.returncode in (0, 130)
