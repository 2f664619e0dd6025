"""Language models as policies."""

__all__: list[str] = []
