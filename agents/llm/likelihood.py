"""How likely a causal language model finds an answer after what was read."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .scoring import evaluation_mode

__all__ = ["LikelihoodScorer"]


class LikelihoodScorer:
    """Gives the mean log-probability of a gold answer's tokens; of several answers the best.

    It is the ``score`` of ``envs.wrappers.AnswerLikelihood``, the potential of TIPS. What was
    read is cut from the front where it is longer than the context.

    Args:
        model: The model, as ``LocalPolicy.model``.
        tokenizer: Its tokenizer, as ``LocalPolicy.tokenizer``.
        max_context: The longest context, in tokens.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_context: int = 1024,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.max_context = max_context

    def __call__(self, question: str, read: Sequence[str], answers: Sequence[str]) -> float:
        """Return the mean log-probability of the most likely answer, in nats a token."""
        return max(self._mean(question, read, answer) for answer in answers)

    def _mean(self, question: str, read: Sequence[str], answer: str) -> float:
        asked = self._encode(f"\n\nQuestion: {question}\nAnswer:")
        gold = self._encode(f" {answer}")
        room = max(0, self.max_context - len(asked) - len(gold))
        context = self._encode("\n\n".join(read))
        ids = [*context[max(0, len(context) - room) :], *asked, *gold]
        tensor = torch.tensor([ids], device=self.model.device)
        with evaluation_mode(self.model), torch.inference_mode():
            logits = self.model(tensor).logits[0, -len(gold) - 1 : -1].float()
        chosen = torch.log_softmax(logits, dim=-1).gather(-1, tensor[0, -len(gold) :, None])
        return float(chosen.mean())

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)[
            "input_ids"
        ]
        return ids
