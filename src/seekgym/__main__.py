"""``python -m seekgym`` is the ``seekgym`` command."""

from .cli import main

main()
