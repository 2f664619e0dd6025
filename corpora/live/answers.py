"""What a server answered, or how it failed to: the unit that a cassette keeps."""

from dataclasses import dataclass

from ..errors import BackendError, PageError

__all__ = ["Answer"]

_BACKEND = "backend"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, as it is recorded.

    Attributes:
        url: Where it came from in the end, after redirects.
        content_type: The header of that name.
        body: What came, decompressed; empty for a fault.
        fault: A code if there is nothing to show; ``backend`` if a server of ours failed.
        reason: The fault in a sentence.
    """

    url: str
    content_type: str = ""
    body: bytes = b""
    fault: str = ""
    reason: str = ""

    @classmethod
    def of_fault(cls, url: str, error: PageError | BackendError) -> "Answer":
        """Return the answer that an error stands for."""
        code = error.code if isinstance(error, PageError) else _BACKEND
        return cls(url, fault=code, reason=str(error))

    @property
    def is_backend_fault(self) -> bool:
        """Whether it is no answer at all, since a server of ours failed."""
        return self.fault == _BACKEND

    def check(self) -> "Answer":
        """Return the answer itself, or raise the error that it stands for.

        Raises:
            PageError: There is no page to show.
            BackendError: A server of ours failed.
        """
        if self.is_backend_fault:
            raise BackendError(self.reason)
        if self.fault:
            raise PageError(self.fault, self.reason)
        return self
