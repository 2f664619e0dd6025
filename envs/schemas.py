"""A tool's schema in the forms that servers and trainers read: OpenAI, MCP, Anthropic."""

from typing import Any

from .actions import ToolSignature

__all__ = ["anthropic_schema", "json_schema", "mcp_schema", "openai_schema"]


def json_schema(tool: ToolSignature) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments: one flat object of scalars."""
    return {
        "type": "object",
        "properties": {
            parameter.name: {"type": parameter.type, "description": parameter.description}
            for parameter in tool.parameters
        },
        "required": [parameter.name for parameter in tool.parameters if parameter.is_required],
        "additionalProperties": False,
    }


def openai_schema(tool: ToolSignature) -> dict[str, Any]:
    """Return the tool as an entry of ``tools`` in OpenAI's chat completions."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": json_schema(tool),
    }
    return {"type": "function", "function": function}


def mcp_schema(tool: ToolSignature) -> dict[str, Any]:
    """Return the tool as the Model Context Protocol lists it."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": json_schema(tool),
    }


def anthropic_schema(tool: ToolSignature) -> dict[str, Any]:
    """Return the tool as an entry of ``tools`` in Anthropic's messages."""
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": json_schema(tool),
    }
