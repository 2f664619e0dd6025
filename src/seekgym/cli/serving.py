"""The commands that serve on this machine: a language model, and a site."""

import contextlib
import socket
from typing import Annotated

import typer

from ..corpora.errors import ConfigurationError, MissingExtraError
from ..corpora.sites import load_site
from ..corpora.sites.serve import make_server
from .console import console

__all__ = ["serve_model", "serve_site"]

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


def serve_site(
    site: Annotated[
        str,
        typer.Argument(help="pydoc, knowledge:entities=600, phantom:people=50, a folder, a WARC."),
    ] = "pydoc",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for a free one.")] = 8080,
) -> None:
    """Serve the pages of seekgym/Web-v0, with its search, to a browser."""
    if site == "live":
        raise ConfigurationError("the live web cannot be served; name a site that is offline")
    _listen(host, port).close()  # tell of a port that is taken before the site is made
    found = load_site(site)
    found.search("index", 1)  # made now, so that the first search does not wait
    with make_server(found, host, port) as server:
        address = f"http://{host}:{server.server_port}/"
        console.print(
            f"Serving {found.corpus.name}, {len(found.corpus)} pages, at {address}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


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
