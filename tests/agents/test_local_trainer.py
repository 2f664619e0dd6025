"""What a trainer does with a policy between rollouts: the policy notices, or does not mind."""

import pytest
import torch
from small_models import family, policy, tokenizer

from seekgym.agents.llm.local import LocalPolicy
from seekgym.agents.llm.tiny import tiny_model
from seekgym.agents.rollouts import generate
from seekgym.corpora import ConfigurationError
from seekgym.corpora.errors import TokenError

ENV = "seekgym/Phantom-50-v0"
SHORT = {"max_turns": 3, "max_observation_chars": 1_000, "k": 2}


def fresh():
    return tiny_model(width=64, layers=2, tokenizer=tokenizer())[0]


def test_a_file_does_not_go_on_with_other_weights(tmp_path):
    made = policy(fresh())
    path = tmp_path / "run.jsonl"
    generate(made, ENV, episodes=2, arguments=SHORT, path=path)
    with torch.no_grad():
        next(made.model.parameters()).mul_(1.01)
    with pytest.raises(ConfigurationError, match=r"of another run: policy weights was '\w+', is"):
        generate(made, ENV, episodes=2, arguments=SHORT, path=path)


def test_weights_that_are_no_numbers_are_an_error():
    made = policy(fresh())
    with torch.no_grad():
        next(made.model.parameters()).fill_(float("nan"))
    with pytest.raises(TokenError, match="logits that are no finite numbers"):
        generate(made, ENV, episodes=1, arguments=SHORT)


def test_a_model_in_training_plays_without_dropout_and_trains_on():
    model = family("gpt2")
    made = policy(model)
    model.train()
    try:
        played = generate(made, ENV, episodes=2, arguments=SHORT)
        assert model.training
    finally:
        model.eval()
    again = generate(made, ENV, episodes=2, arguments=SHORT)
    assert [t.segments[0].ids for t in played] == [t.segments[0].ids for t in again]


def test_a_tokenizer_of_another_model_is_refused():
    small = tiny_model(width=64, layers=1, tokenizer=tokenizer())[0]
    small.resize_token_embeddings(100)
    with pytest.raises(ConfigurationError, match="has 600 tokens, the model knows 100"):
        policy(small)


def test_type_and_device_are_honoured_or_refused():
    made = LocalPolicy.from_pretrained("tiny", dtype="bfloat16", device="cpu")
    assert made.model.dtype == torch.bfloat16
    for options, words in (({"dtype": "zzz"}, "got 'zzz'"), ({"device": "zzz"}, "device 'zzz'")):
        with pytest.raises(ConfigurationError, match=words):
            LocalPolicy.from_pretrained("tiny", **options)


def test_what_is_no_budget_or_workers_is_named():
    for options, words in (({"budget": 5}, "got 5"), ({"workers": 3}, "RayWorkers")):
        with pytest.raises(ConfigurationError, match=words):
            generate(policy(fresh()), ENV, episodes=1, **options)
