"""Work as a user without privileges, whoever runs the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_privileges"]

_NOBODY = 65534


@contextmanager
def without_privileges() -> Iterator[None]:
    """Give up the rights of root, to which permissions do not apply; others have none to give up.

    Import everything that is needed before: it may be where only root can read.
    """
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, 0)
    os.setresuid(_NOBODY, _NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)
