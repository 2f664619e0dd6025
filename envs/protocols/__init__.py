"""Text protocols: how a policy that writes text speaks. A new one is a file and a row here."""

from collections.abc import Sequence

from ...corpora.errors import raise_unknown
from ..actions import ToolSignature
from .base import Blank, Form, Kind, Protocol, neutralize
from .hermes import HermesProtocol
from .react import ReActProtocol
from .search_r1 import SearchR1Protocol, check_sequence, extract_answer

__all__ = [
    "PROTOCOLS",
    "Blank",
    "Form",
    "HermesProtocol",
    "Kind",
    "Protocol",
    "ReActProtocol",
    "SearchR1Protocol",
    "check_sequence",
    "extract_answer",
    "get_protocol",
    "neutralize",
]

PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol for protocol in (SearchR1Protocol, HermesProtocol, ReActProtocol)
}


def get_protocol(name: str, tools: Sequence[ToolSignature]) -> Protocol:
    """Return the protocol of a name, for some tools.

    Raises:
        ConfigurationError: There is no protocol of that name.
    """
    if name not in PROTOCOLS:
        raise_unknown("protocol", name, PROTOCOLS)
    return PROTOCOLS[name](tools)
