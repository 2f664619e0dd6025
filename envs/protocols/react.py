"""The protocol of ReAct (Yao et al. 2023, arXiv:2210.03629): thoughts and actions in lines."""

import re
from collections.abc import Sequence

from ...corpora.text import replace_surrogates
from ..actions import Action, ProtocolError, ToolSignature
from .base import Blank, Form, Kind, Protocol, make_call, neutralize

__all__ = ["ReActProtocol"]

_ACTION = re.compile(r"^[ \t]{0,8}Action[ \t]{0,8}\d{0,4}:[ \t]{0,8}(.*)$", re.MULTILINE)
_CALL = re.compile(r"([A-Za-z_]{1,64})[ \t]{0,8}\[(.*)\][ \t.]{0,8}", re.DOTALL)
_RIGHT = "Write a line such as: Action: search[what to look for]"


class ReActProtocol(Protocol):
    """``Thought: ...`` and then ``Action: tool[argument]``, each on a line.

    The first ``Action:`` line is the action; what follows its line is dropped. The argument is
    what stands between the first and the last bracket of the line. Tool names may be written in
    any case, and ``Finish`` means ``answer``, as in the paper. A turn is well formed if it
    begins with a thought and ends with the action.
    """

    name = "react"
    stop = ("\nObservation:",)

    def system_prompt(self) -> str:
        """Return the instructions, with a line for each tool."""
        lines = "\n".join(
            f"Action: {tool.name}[{_parameter(tool)}]  {tool.description}" for tool in self.tools
        )
        return (
            "Answer the question by turns. In each turn write a line that begins with Thought: "
            f"and then one line that begins with Action: and is one of these:\n{lines}\n"
            "What it gives comes back after Observation: ."
        )

    def encode(self, observation: str, kind: Kind) -> str:
        """Return the text under its label."""
        label = "Question" if kind == "question" else "Observation"
        text = observation if kind == "notice" else neutralize(observation)
        return f"\n{label}: {text}\n"

    def decode(self, text: str) -> Action:
        """Return the first action."""
        text = replace_surrogates(text)
        line = _ACTION.search(text)
        if line is None:
            return ProtocolError("no_action", f"There was no action. {_RIGHT}")
        call = _CALL.fullmatch(line[1].rstrip())
        if call is None:
            reason = f"The action was not a tool with its argument in brackets. {_RIGHT}"
            return ProtocolError("bad_action", reason)
        name = call[1].lower()
        name = "answer" if name == "finish" else name
        parameters = {tool.name: _parameter(tool) for tool in self.tools}
        if name not in parameters:
            known = ", ".join(parameters)
            return ProtocolError("unknown_tool", f"There is no tool {name!r}. The tools: {known}.")
        return make_call(
            name,
            {parameters[name]: call[2].strip()} if parameters[name] else {},
            is_well_formed=text.lstrip().startswith("Thought"),
            rest=text[line.end() :].strip().removesuffix(self.stop[0].strip()),
        )

    def forms(self) -> Sequence[Form]:
        """Return one action for each tool, without a thought before."""
        return [(f"Action: {tool.name}[", Blank("]", "[]\n")) for tool in self.tools]


def _parameter(tool: ToolSignature) -> str:
    """Return the name of a tool's one argument in brackets; empty if it takes none."""
    return tool.parameters[0].name if tool.parameters else ""
