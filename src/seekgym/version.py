"""The version, in one place that the build can read without importing the package."""

__all__ = ["__version__"]

__version__ = "0.1.0"
