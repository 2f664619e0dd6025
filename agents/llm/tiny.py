"""A small model of our own, to train and to test with: no download, a second to make."""

from collections.abc import Iterable

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from ...corpora.phantom import PhantomWorld
from ...envs.actions import ToolSignature
from ...envs.protocols import PROTOCOLS
from ...envs.tools import Answer

__all__ = ["tiny_model", "world_tokenizer"]

_POSITIONS = 4096
_END = "<|end|>"
# What no token reaches over: a tag, a lower-case word with the space before it, a digit, and in
# every other word a syllable that ends in its vowel. So an invented name takes the same few
# tokens wherever it stands, and every name is made of tokens that many names have.
_PIECE = (
    r"</?[a-z]+>"
    r"| [a-z]+"
    r"| ?[A-Z][b-df-hj-np-tv-z]*[aeiou]?"
    r"|[b-df-hj-np-tv-z]+[aeiou]?"
    r"|[aeiou]"
    r"| ?[0-9]"
    r"| ?[^\sA-Za-z0-9<]+"
    r"| ?<"
    r"|\s"
)
_WORLDS = 4  # whose names the tokenizer sees


def tiny_model(
    *,
    width: int = 128,
    layers: int = 4,
    vocabulary: int = 2048,
    seed: int = 0,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerBase]:
    """Return a Llama-style model with random weights, and its tokenizer.

    Args:
        width: Of its hidden states; a head takes 32.
        layers: How many.
        vocabulary: The size of the tokenizer that is made.
        seed: Decides the weights.
        tokenizer: A tokenizer to use; by default one trained on world text.
    """
    tokenizer = tokenizer or world_tokenizer(vocabulary=vocabulary)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 32),
        num_key_value_heads=max(1, width // 32),
        max_position_embeddings=_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    return model, tokenizer


def world_tokenizer(
    texts: Iterable[str] | None = None, *, vocabulary: int = 2048
) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer trained on the text of worlds, by syllables.

    Args:
        texts: What to train it on; by default the articles of invented universes, questions,
            and the instructions and tags of every protocol.
        vocabulary: How many tokens, at least 257.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECE), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_world_texts() if texts is None else texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=_END, pad_token=_END)


def _world_texts() -> Iterable[str]:
    for seed in range(_WORLDS):
        world = PhantomWorld(500, world_seed=seed)
        yield from (f"{document.title}\n{document.text}" for document in world.corpus)
    tools: list[ToolSignature] = [Answer.signature]
    for protocol in PROTOCOLS.values():
        yield protocol(tools).system_prompt()
    tags = ("search", "information", "answer", "think")
    words = "Question: Who is the What is the 1. [p1] 2. [p2] [p3]"
    yield from ["".join(f"<{tag}></{tag}>" for tag in tags) + f"\n\n{words}\n"] * _WORLDS * 500
