"""`python -m chatledger.cli`, for when the script is not on PATH."""

import sys

from chatledger.cli import main

sys.exit(main())
