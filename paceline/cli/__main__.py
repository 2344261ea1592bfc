"""`python -m paceline.cli`: the command line where no script is installed."""

import sys

from paceline.cli.main import main

sys.exit(main())
