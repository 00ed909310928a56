"""What the figures were measured on, and how long its disk takes."""

from __future__ import annotations

import os
import platform
import tempfile
import time

from benchmarks.measure import Sample


def machine() -> str:
    cores, load = os.cpu_count(), os.getloadavg()[0]
    return f"Python {platform.python_version()}, {platform.machine()}, {cores} cores, load {load:.1f} before the run"


def fsync_time() -> float:
    """Seconds that a page takes to be on the disk."""
    times = []
    with tempfile.TemporaryFile() as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    return Sample(times).median
