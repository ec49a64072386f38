"""What a policy says that will not work as written."""

from __future__ import annotations

import os

from .. import _core
from ..errors import CorruptDataError, InvalidArgumentError, UnknownNameError


def validate_policy(policy: object, device: object = "cpu") -> list[str]:
    """What will not work as written on a device: one text each, and none where all is well.

    Takes a `KernelPolicy`, an `ExecutionPolicy`, the path of a file or a dict. A file that cannot be read is an error;
    one that is no policy is a finding.
    """
    if isinstance(policy, _core.ExecutionPolicy):
        return _core.findings_of_execution_policy(policy)
    try:
        if isinstance(policy, (str, os.PathLike)):
            return _core.findings_of_file(policy, device)
        return _core.findings_of_policy(_core.as_policy(policy), device)
    except (InvalidArgumentError, UnknownNameError, CorruptDataError) as error:
        return [f"error: {error}"]
