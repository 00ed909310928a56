"""A run that is told to end ends: its databases are dropped and its servers stopped on the way out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn


def run_to_the_end(main: Callable[[], int]) -> NoReturn:
    """Exits with what `main` gives. Ended before, it does not wait for the threads of connections left open, which wait
    for work that never comes.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        code: object = main()
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
