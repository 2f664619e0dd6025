"""How far apart two models are, token by token: what a student learns from a teacher model.

Each takes logits over one vocabulary, of shape (..., vocabulary), and returns one number in nats
for each place, of shape (...), at least 0 and 0 only where both say the same. Gradients flow into
the student alone, if the teacher's logits have none.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .token_batch import LOG_LIMIT

__all__ = [
    "DIVERGENCES",
    "Divergence",
    "drawn_losses",
    "forward_kl",
    "jensen_shannon",
    "reverse_kl",
    "teacher_advantages",
]

Divergence = Callable[[Tensor, Tensor], Tensor]


def forward_kl(student: Tensor, teacher: Tensor) -> Tensor:
    """Return ``KL(teacher || student)``: the student covers all that the teacher may say.

    Supervised distillation's divergence, and the first choice of GKD (Agarwal et al. 2024,
    arXiv:2306.13649, section 2).
    """
    return _kl(teacher.log_softmax(dim=-1), student.log_softmax(dim=-1))


def reverse_kl(student: Tensor, teacher: Tensor) -> Tensor:
    """Return ``KL(student || teacher)``: the student keeps to what the teacher finds likely.

    The mode-seeking choice of GKD (arXiv:2306.13649, section 2) and of MiniLLM (Gu et al. 2024,
    arXiv:2306.08543). Here it is summed over the whole vocabulary at each place, and the tokens
    that led there are given: nothing flows through their sampling, as in GKD.
    """
    return _kl(student.log_softmax(dim=-1), teacher.log_softmax(dim=-1))


def jensen_shannon(student: Tensor, teacher: Tensor, *, beta: float = 0.5) -> Tensor:
    """Return ``beta KL(T || M) + (1 - beta) KL(S || M)`` with ``M = beta T + (1 - beta) S``.

    The generalised Jensen-Shannon divergence of GKD (arXiv:2306.13649, equation 1), bounded by
    log 2. Over ``beta`` it is the forward KL as ``beta`` goes to 0; over ``1 - beta`` the reverse
    KL as it goes to 1.

    Args:
        student: Logits.
        teacher: Logits.
        beta: The teacher's share of the mixture, above 0 and below 1.
    """
    from_student, from_teacher = student.log_softmax(dim=-1), teacher.log_softmax(dim=-1)
    shares = torch.tensor([beta, 1 - beta], device=student.device, dtype=student.dtype).log()
    mixture = torch.logaddexp(from_teacher + shares[0], from_student + shares[1])
    return beta * _kl(from_teacher, mixture) + (1 - beta) * _kl(from_student, mixture)


def teacher_advantages(teacher_log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """Return ``log q - log p_old`` of each drawn token, for a policy gradient.

    Its mean over the policy's draws is minus the reverse KL, one sample of it a token; as an
    advantage without discount it is on-policy distillation as reinforcement learning. The reward
    of MiniLLM's single steps (arXiv:2306.08543). Nothing flows through it.

    Args:
        teacher_log_probs: Of each drawn token under the teacher, ``log q``.
        old_log_probs: Under the policy that drew it.
    """
    return (teacher_log_probs - old_log_probs).detach()


def drawn_losses(log_probs: Tensor, teacher_log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """Return ``-r A``, the policy gradient with a teacher's advantages and the ratio ``r``.

    In the mean over the policy's draws its gradient is that of ``reverse_kl``, as long as the
    policy is still the one that drew.

    Args:
        log_probs: Of each drawn token under the policy that is trained, with gradient.
        teacher_log_probs: Under the teacher.
        old_log_probs: Under the policy that drew it.
    """
    ratio = (log_probs - old_log_probs).clamp(max=LOG_LIMIT).exp()
    return -ratio * teacher_advantages(teacher_log_probs, old_log_probs)


def _kl(first: Tensor, second: Tensor) -> Tensor:
    """Return ``KL(first || second)`` of two arrays of log-probabilities."""
    return (first.exp() * (first - second)).sum(dim=-1)


DIVERGENCES: dict[str, Divergence] = {
    "forward": forward_kl,
    "jensen-shannon": jensen_shannon,
    "reverse": reverse_kl,
}
