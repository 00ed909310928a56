"""The tests. A process that imports them before the library runs without the protection that the variable names."""

import os

VARIABLE = "CHATLEDGER_MUTANT"

if VARIABLE in os.environ:
    from tests.faults.mutant import activate

    activate(os.environ[VARIABLE])
