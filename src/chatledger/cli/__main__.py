"""`python -m chatledger.cli`: the command line, even if the script `chatledger` is not on PATH."""

import sys

from chatledger.cli import main

sys.exit(main())
