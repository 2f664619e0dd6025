"""The ``seekgym`` command. A new command is a function in a module here and a row below."""

import io
import sys
from typing import Annotated

import typer

from ..corpora.errors import SeekgymError
from ..version import __version__
from .audit import audit
from .bench import bench
from .console import console, errors
from .doctor import doctor
from .episodes import list_environments, play, show
from .index import index
from .serving import serve_model, serve_site
from .train import train
from .trajectories import trajectories
from .worlds import certify, world

__all__ = ["app", "main"]

app = typer.Typer(
    help="Search environments for agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(list_environments)
app.command()(play)
app.command()(bench)
app.command()(show)
app.command()(certify)
app.command()(serve_model)
app.command()(serve_site)
app.command()(trajectories)
app.command()(audit)
app.command()(doctor)
app.command()(index)
app.add_typer(world, name="world")
app.add_typer(train, name="train")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        console.print(f"seekgym {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version),
    ] = False,
) -> None:
    """Search environments for agents."""


def main() -> None:
    """Run the command; a mistake gives one line and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack a script
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        message = error.format_message().replace("\n", " ")
        code = _complain(f"{message} (see --help)") if message.strip() else 2
    except SeekgymError as error:
        code = _complain(str(error))
    except OSError as error:
        code = _complain(f"{error.filename or 'file'}: {error.strerror or error}")
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    errors.print(f"seekgym: {message}", markup=False, highlight=False, soft_wrap=True)
    return 2
