"""The Node of this machine: on PATH, or installed with apt together with npm.

`python -m tests.ai_sdk.node` prints its path, and fails with what to install if there is none.
"""

from __future__ import annotations

import sys

from tests import programs

NODE = ("node", "nodejs")
NPM = ("npm",)

if __name__ == "__main__":
    path = programs.find_or_install(NODE, ["nodejs"])
    if path is None or programs.find_or_install(NPM, ["npm"]) is None:
        sys.exit("there is no Node to test with: install it, so that node and npm are on PATH")
    print(path)
