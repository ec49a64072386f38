"""The policy that says how an engine runs a whole model."""

from .._core import ExecutionPolicy as ExecutionPolicy
