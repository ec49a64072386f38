"""The exceptions of this package: one for each kind of thing that goes wrong, all under `XpuRuntimeError`.

Each also derives from what a Python user would catch: `ValueError` for wrong values, `MemoryError`, `OSError`,
`TimeoutError`. Texts start with the function in brackets and end with what to do.
"""

import builtins


class XpuRuntimeError(Exception):
    """The root of all errors of this package."""


class InvalidArgumentError(XpuRuntimeError, ValueError):
    """Something that cannot be right was passed in."""


class ArgumentTypeError(XpuRuntimeError, TypeError):
    """An argument is of a type that the function does not take."""


class UnknownNameError(XpuRuntimeError, ValueError):
    """There is no such op, dtype, device or kernel; the text lists the near ones."""


class NotSupportedError(XpuRuntimeError):
    """A right request that nothing here can serve; the text says why."""


class DeviceError(XpuRuntimeError, RuntimeError):
    """A driver or a launch failed."""


class DeviceLostError(DeviceError):
    """The device takes no more work in this process: start a new one. Other devices go on."""


class OutOfMemoryError(XpuRuntimeError, MemoryError):
    """A device or the host has not enough memory."""


class FileError(XpuRuntimeError, OSError):
    """A file could not be read or written."""


class CorruptDataError(XpuRuntimeError, ValueError):
    """A file was read, but it is not what it claims to be."""


class TimeoutError(XpuRuntimeError, builtins.TimeoutError):
    """Something took longer than it was allowed to."""


class InternalError(XpuRuntimeError, RuntimeError):
    """A defect of the library."""
