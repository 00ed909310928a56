"""The SDK sends traces of its runs to its maker unless it is told not to. No test talks to the network."""

from __future__ import annotations

from agents import set_tracing_disabled

set_tracing_disabled(True)
