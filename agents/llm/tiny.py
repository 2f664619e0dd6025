"""A small model of our own, to train and to test with: no download, a second to make."""

from collections.abc import Iterable

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
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
    """Return a byte-level BPE tokenizer trained on the text of worlds.

    Args:
        texts: What to train it on; by default the articles of an invented universe and the
            instructions of every protocol.
        vocabulary: How many tokens, at least 257.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
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
    world = PhantomWorld(500)
    yield from (f"{document.title}\n{document.text}" for document in world.corpus)
    tools: list[ToolSignature] = [Answer.signature]
    for protocol in PROTOCOLS.values():
        yield protocol(tools).system_prompt()
