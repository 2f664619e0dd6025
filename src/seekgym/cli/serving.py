"""The command that serves a language model on this machine."""

import socket
from typing import Annotated

import typer

from ..corpora.errors import ConfigurationError, MissingExtraError
from .console import console

__all__ = ["serve_model"]

_MAX_PORT = 65535


def serve_model(
    model: Annotated[
        str, typer.Argument(help="A folder, a .gguf file, a hub name, smollm2-135m or tiny.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for a free one.")] = 8000,
) -> None:
    """Serve a model of transformers to OpenAI clients, for example to --agent chat."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "serve") from None
    from ..agents.llm.serve import create_app

    listener = _listen(host, port)
    with listener:
        try:
            from ..agents.llm.chat_model import TransformersChatModel
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or "transformers", "llm") from error
        app = create_app(TransformersChatModel.from_pretrained(model))
        address = f"http://{host}:{listener.getsockname()[1]}/v1"
        console.print(
            f"Serving {model} at {address}", markup=False, highlight=False, soft_wrap=True
        )
        config = uvicorn.Config(app, log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before the model is loaded, which may take a while."""
    if not 0 <= port <= _MAX_PORT:
        raise ConfigurationError(f"port must be from 0 to {_MAX_PORT}, got {port}")
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise ConfigurationError(
            f"port {port} of {host} cannot be used ({error.strerror}); pass another --port"
        ) from None
