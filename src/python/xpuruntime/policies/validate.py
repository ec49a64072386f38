"""What a policy says that will not work as written."""

from __future__ import annotations

import os
import sys

from .. import _core
from ..errors import CorruptDataError, InvalidArgumentError, UnknownNameError


def validate_policy(policy: object, device: object = "cpu") -> list[str]:
    """What will not work as written on a device: one text each, and none where all is well.

    Takes a `KernelPolicy`, an `ExecutionPolicy`, the path of a file or a dict. A file that cannot be read is an error;
    one that is no policy is a finding.
    """
    # An engine's process is to find what this one does.
    _core.set_engine_python(sys.executable or "python3", os.pathsep.join(path for path in sys.path if path))
    if isinstance(policy, _core.ExecutionPolicy):
        return _core.findings_of_execution_policy(policy)
    try:
        if isinstance(policy, (str, os.PathLike)):
            return _core.findings_of_file(policy, device)
        return _core.findings_of_policy(_core.as_policy(policy), device)
    except (InvalidArgumentError, UnknownNameError, CorruptDataError) as error:
        return [f"error: {error}"]
