"""Training: agents that learn. Import from the modules, which need the extras they name."""

__all__: list[str] = []
