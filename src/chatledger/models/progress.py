"""How far a long call has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""A function that a long call tells how far it is: the number of steps done, and the number of all steps. Steps are
threads in `check` and `reencrypt`, and pages of the file in `backup` and `restore`. The call waits for the function.
"""
