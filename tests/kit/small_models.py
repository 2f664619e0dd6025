"""Small real models for tests: random ones, and some that were taught a format."""

from functools import cache

import gymnasium as gym
import torch
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

import seekgym  # noqa: F401 - registers the environments
from seekgym.agents.llm.formats import Format
from seekgym.agents.llm.local import LocalPolicy
from seekgym.agents.llm.tiny import tiny_model, world_tokenizer
from seekgym.envs.wrappers import TextProtocol

torch.set_num_threads(1)  # the models are small, and waiting threads slow each other down
CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
SEARCH = "<think>Zoë – Ōsaka 城?</think>\n<search>Ōsaka 城 🏯</search>\n"
ANSWER = "<answer>城</answer>\n"
_STEPS = 200
_SIZES = {"vocab_size": 0, "max_position_embeddings": 4096, "bos_token_id": None, "eos_token_id": 0}


@cache
def tokenizer(has_template=False):
    made = world_tokenizer(vocabulary=600)
    if has_template:
        made.chat_template = CHAT_TEMPLATE
    return made


@cache
def family(name):
    """A random model of a family of architectures."""
    return _random(name).eval()


def _random(name):
    sizes = _SIZES | {"vocab_size": len(tokenizer())}
    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(0)
    if name == "llama":
        return tiny_model(width=64, layers=2, tokenizer=tokenizer())[0]
    if name == "qwen2":
        kv = {"num_key_value_heads": 2, "intermediate_size": 96}
        return Qwen2ForCausalLM(Qwen2Config(**sizes, **small, **kv))
    if name == "gpt2":
        size = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 4096}
        config = {key: value for key, value in sizes.items() if key != "max_position_embeddings"}
        return GPT2LMHeadModel(GPT2Config(**config, **size))
    if name == "gpt-neox":
        return GPTNeoXForCausalLM(GPTNeoXConfig(**sizes, **small, intermediate_size=96))
    if name == "mistral":  # looks back over a window
        kv = {"num_key_value_heads": 2, "intermediate_size": 96, "sliding_window": 64}
        return MistralForCausalLM(MistralConfig(**sizes, **small, **kv))
    assert name == "falcon"  # linear biases: knows no positions
    return FalconForCausalLM(FalconConfig(**sizes, **small, alibi=True))


@cache
def taught(has_template=False):
    """A model that was taught, in seconds, to search once and then to answer in search-r1."""
    made = tokenizer(has_template)
    model, _ = tiny_model(width=64, layers=2, tokenizer=made, seed=1)
    layout = Format(made)
    env = TextProtocol(gym.make("seekgym/Phantom-50-v0", max_observation_chars=1_200), "search-r1")
    sequences = []
    for seed in range(16):
        question, info = env.reset(seed=seed)
        observation = env.step(SEARCH)[0]
        given = layout.start(info["system_prompt"], question)
        first, rest = layout.plain(SEARCH), layout.observation(observation)
        last = layout.plain(ANSWER)
        labels = [-100] * len(given) + first + [-100] * len(rest) + last
        sequences.append((torch.tensor([given + first + rest + last]), torch.tensor([labels])))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    generator = torch.Generator().manual_seed(0)
    model.train()
    for step in range(_STEPS):
        optimizer.param_groups[0]["lr"] = 6e-3 * min(1.0, step / 10) * (1 - step / _STEPS)
        index = int(torch.randint(len(sequences), (), generator=generator))
        ids, labels = sequences[index]
        model(ids, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def policy(model=None, protocol="search-r1", *, has_template=False, **options):
    """A policy for tests: short contexts, short replies."""
    settings = {"max_context": 1024, "max_new_tokens": 24, "batch_size": 8} | options
    return LocalPolicy(
        model if model is not None else family("llama"),
        tokenizer(has_template),
        protocol=protocol,
        **settings,
    )
