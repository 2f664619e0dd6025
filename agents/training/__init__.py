"""Training: policies learn from episodes. Import from the modules; torch is theirs alone."""

__all__: list[str] = []
