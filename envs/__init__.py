"""The rules: search environments, their tools, protocols, scores and rewards."""

from .actions import Action, Parameter, ProtocolError, ToolCall, ToolSignature
from .base import SearchEnv
from .citations import CitationPrecision, CitationRecall, OpenedEvidence
from .episode import Message, Snapshot
from .game import Game
from .grep import GrepEnv
from .knowledge_graph import KnowledgeGraphEnv
from .outcome import Outcome
from .phantom import PhantomEnv
from .qa import QAEnv
from .rewards import (
    F1,
    CoverExactMatch,
    EvidenceRecall,
    ExactMatch,
    Format,
    FormatF1,
    RepeatedQuery,
    RewardTerm,
    SearchCost,
    SearchR1Ladder,
    TurnCost,
)
from .rules import Rules
from .spaces import FreeText, ToolCalls
from .tools import Answer, Read, Search, Tool, ToolResult
from .vector import SearchVectorEnv
from .web import WebEnv

__all__ = [
    "F1",
    "Action",
    "Answer",
    "CitationPrecision",
    "CitationRecall",
    "CoverExactMatch",
    "EvidenceRecall",
    "ExactMatch",
    "Format",
    "FormatF1",
    "FreeText",
    "Game",
    "GrepEnv",
    "KnowledgeGraphEnv",
    "Message",
    "OpenedEvidence",
    "Outcome",
    "Parameter",
    "PhantomEnv",
    "ProtocolError",
    "QAEnv",
    "Read",
    "RepeatedQuery",
    "RewardTerm",
    "Rules",
    "Search",
    "SearchCost",
    "SearchEnv",
    "SearchR1Ladder",
    "SearchVectorEnv",
    "Snapshot",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "ToolResult",
    "ToolSignature",
    "TurnCost",
    "WebEnv",
]
