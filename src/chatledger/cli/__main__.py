"""`python -m chatledger.cli`, where the script is not on the path."""

import sys

from chatledger.cli import main

sys.exit(main())
