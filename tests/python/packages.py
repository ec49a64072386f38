"""Packages that a test needs and that may be missing."""

from __future__ import annotations

import importlib
import unittest
import warnings
from typing import Any


def optional(name: str) -> Any:
    """The package, or None. Debian's PyTorch warns about a newer NumPy, which we do not use with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None


def need(*names: str) -> None:
    """Skips the whole file where one of them is missing."""
    for name in names:
        if optional(name) is None:
            raise unittest.SkipTest(f"{name} is not installed")
