import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from seekgym.agents.llm import LocalPolicy  # noqa: E402
from seekgym.agents.llm.likelihood import LikelihoodScorer  # noqa: E402
from seekgym.envs import QAEnv  # noqa: E402
from seekgym.envs.wrappers import AnswerLikelihood, PotentialShaping  # noqa: E402


@pytest.fixture(scope="module")
def policy():
    return LocalPolicy.from_pretrained("tiny")


def test_it_is_the_mean_of_the_answers_log_probabilities(policy):
    scorer = LikelihoodScorer(policy.model, policy.tokenizer)
    tokenizer, model = policy.tokenizer, policy.model
    prompt = tokenizer("It rains.\n\nQuestion: Who?\nAnswer:", add_special_tokens=False)[
        "input_ids"
    ]
    gold = tokenizer(" Ann Lee", add_special_tokens=False)["input_ids"]
    total = 0.0
    for place, token in enumerate(gold):
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + gold[:place]])).logits[0, -1].float()
        total += float(torch.log_softmax(logits, -1)[token])
    both = [scorer("Who?", ["It rains."], [name]) for name in ("Ann Lee", "Bo")]
    assert both[0] == pytest.approx(total / len(gold), abs=1e-4)
    assert scorer("Who?", ["It rains."], ["Ann Lee", "Bo"]) == max(both)


def test_a_long_reading_is_cut_from_the_front(policy):
    scorer = LikelihoodScorer(policy.model, policy.tokenizer, max_context=64)
    value = scorer("Who?", ["word " * 500, "the end"], ["Ann"])
    assert value == scorer("Who?", ["word " * 900, "the end"], ["Ann"])
    assert math.isfinite(value)


def test_it_shapes_an_environment(policy):
    score = LikelihoodScorer(policy.model, policy.tokenizer, max_context=256)
    env = PotentialShaping(QAEnv(), AnswerLikelihood(score), weight=0.1)
    env.reset(seed=0)
    start = env.snapshot().kept
    total = env.step(env.unwrapped.search_call("music"))[1]
    total += env.step(env.unwrapped.answer_call("no idea"))[1]
    assert total == pytest.approx(-start)
    assert start < 0
