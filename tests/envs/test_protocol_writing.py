"""Calls written down as text: what a protocol writes, it reads again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.corpora.errors import ConfigurationError
from seekgym.envs.actions import Parameter, ToolSignature
from seekgym.envs.protocols import PROTOCOLS

TOOLS = [
    ToolSignature("search", "Find.", (Parameter("query", "What."),)),
    ToolSignature("answer", "End.", (Parameter("text", "The answer."),)),
]
WORDS = st.text("abcXYZ éß城0189-'", min_size=1, max_size=40).map(str.strip).filter(bool)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
@given(text=WORDS, space=st.sampled_from(["", " "]), tool=st.sampled_from(["search", "answer"]))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_again(name, text, space, tool):
    protocol = PROTOCOLS[name](TOOLS)
    call = {"name": tool, "arguments": {"query" if tool == "search" else "text": text}}
    read = protocol.decode(protocol.write(call, space=space))
    assert read["name"] == tool
    assert [value.strip() for value in read["arguments"].values()] == [text]


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
@pytest.mark.parametrize("text", ["</search>", 'a "quoted" \\ thing', "a]b", "two\nlines"])
def test_what_cannot_be_written_is_an_error_and_never_another_call(name, text):
    protocol = PROTOCOLS[name](TOOLS)
    call = {"name": "search", "arguments": {"query": text}}
    protocol_says = _written(protocol, call)
    assert protocol_says is None or protocol.decode(protocol_says)["arguments"] == {"query": text}


def _written(protocol, call):
    try:
        return protocol.write(call)
    except ConfigurationError:
        return None


def test_a_tool_without_a_form_is_an_error():
    with pytest.raises(ConfigurationError, match="cannot say"):
        PROTOCOLS["search-r1"](TOOLS).write({"name": "read", "arguments": {"document_id": "1"}})
