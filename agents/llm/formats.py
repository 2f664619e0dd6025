"""How a conversation becomes tokens: each piece of text is encoded once, by itself."""

from typing import Any

from transformers import PreTrainedTokenizerBase

from ...corpora.errors import ConfigurationError
from ...corpora.text import replace_surrogates

__all__ = ["Format"]

_QUESTION = "qzxQUESTIONzxq"
_REPLY = "qzxREPLYzxq"
_OBSERVATION = "qzxOBSERVATIONzxq"


class Format:
    """Lays out a conversation for one tokenizer.

    With a chat template, questions and observations are messages of the user and replies are
    messages of the assistant; what the template puts between them is found by rendering it once.
    Without one, the texts follow one another. Texts of an environment are encoded so that
    nothing in them becomes a control token.

    Args:
        tokenizer: The model's tokenizer.
        has_template: Whether to use its chat template; by default if it has one.

    Raises:
        ConfigurationError: The template cannot be used turn by turn.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, *, has_template: bool | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.has_template = bool(tokenizer.chat_template) if has_template is None else has_template
        self.eos = frozenset(_eos_ids(tokenizer))
        self._after_reply: list[int] = []
        self._before_reply: list[int] = []
        self._takes_system = True
        if self.has_template:
            between, after = self._between()
            self._after_reply = self._template_ids(between)
            self._before_reply = self._template_ids(after)

    def start(self, system: str, question: str, *, extra: list[int] | None = None) -> list[int]:
        """Return the ids of the instructions and the question, up to where a reply begins.

        Args:
            system: The instructions.
            question: The first observation.
            extra: Ids to put after the question.
        """
        more = extra or []
        if not self.has_template:
            bos = self.tokenizer.bos_token_id
            head = [] if bos is None else [int(bos)]
            return [
                *head,
                *self.plain(f"{system}\n\n" if system else ""),
                *self.plain(question),
                *more,
            ]
        before, after = self._rendered_start(system)
        return [*before, *self.plain(question), *more, *after]

    def observation(self, text: str, *, last: int | None = None) -> list[int]:
        """Return the ids that stand between one reply and the next, for an observation."""
        return self.between(self.plain(text), last=last)

    def between(self, ids: list[int], *, last: int | None = None) -> list[int]:
        """Return the ids that stand between one reply and the next.

        Args:
            ids: Those of the observation.
            last: The last id of the reply: an end of turn that the model wrote is not repeated.
        """
        after = self._after_reply
        if after and last is not None and last == after[0]:
            after = after[1:]
        return [*after, *ids, *self._before_reply]

    def plain(self, text: str) -> list[int]:
        """Return the ids of a text; nothing in it becomes a control token."""
        if not text:
            return []
        return self._ids(text, split_special_tokens=True)

    def text(self, ids: list[int]) -> str:
        """Return the text of some ids, control tokens included."""
        decoded = self.tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(decoded)

    def _rendered_start(self, system: str) -> tuple[list[int], list[int]]:
        text = self._render(self._opening(replace_surrogates(system), _QUESTION), True)
        before, found, after = text.partition(_QUESTION)
        if not found:
            raise _unusable()
        return self._template_ids(before), self._template_ids(after)

    def _between(self) -> tuple[str, str]:
        """Return what the template puts after a reply, and before the next one."""
        try:
            self._render(self._opening("system", "question"), True)
        except Exception:  # templates raise what they like
            self._takes_system = False
        messages = [
            *self._opening("system", "question"),
            {"role": "assistant", "content": _REPLY},
            {"role": "user", "content": _OBSERVATION},
        ]
        try:
            text = self._render(messages, True)
        except Exception as error:
            raise _unusable() from error
        if text.count(_REPLY) != 1 or text.count(_OBSERVATION) != 1:
            raise _unusable()
        _, _, rest = text.partition(_REPLY)
        between, _, after = rest.partition(_OBSERVATION)
        return between, after

    def _opening(self, system: str, question: str) -> list[dict[str, str]]:
        if not system:
            return [{"role": "user", "content": question}]
        if not self._takes_system:
            return [{"role": "user", "content": f"{system}\n\n{question}"}]
        return [{"role": "system", "content": system}, {"role": "user", "content": question}]

    def _render(self, messages: list[dict[str, str]], is_prompt: bool) -> str:
        rendered: Any = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=is_prompt
        )
        return str(rendered)

    def _template_ids(self, text: str) -> list[int]:
        return self._ids(text, split_special_tokens=False) if text else []

    def _ids(self, text: str, *, split_special_tokens: bool) -> list[int]:
        encoded: Any = self.tokenizer(
            replace_surrogates(text),
            add_special_tokens=False,
            split_special_tokens=split_special_tokens,
            return_attention_mask=False,
        )
        return [int(i) for i in encoded["input_ids"]]


def _unusable() -> ConfigurationError:
    return ConfigurationError(
        "the tokenizer's chat template does not show messages as they are, so that a conversation "
        "cannot grow token by token; pass has_template=False to do without it"
    )


def _eos_ids(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    eos = tokenizer.eos_token_id
    if eos is None:
        return []
    return [int(i) for i in eos] if isinstance(eos, list) else [int(eos)]
