"""Sites that need no network: documentation, made worlds, folders of pages."""

__all__: list[str] = []
