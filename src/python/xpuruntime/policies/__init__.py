"""Policies as code: which kernel runs each op (`KernelPolicy`), how engines run a model (`ExecutionPolicy`)."""

from .execution_policy import ExecutionPolicy as ExecutionPolicy
from .kernel_policy import AutoSelectStrategy as AutoSelectStrategy
from .kernel_policy import KernelPolicy as KernelPolicy
from .kernel_policy import get_kernel_policy as get_kernel_policy
from .kernel_policy import set_kernel_policy as set_kernel_policy
from .validate import validate_policy as validate_policy
