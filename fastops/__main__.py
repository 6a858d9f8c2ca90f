"""``python -m fastops``."""

import sys

from fastops._shell.main import main

if __name__ == "__main__" and (status := main()):
    sys.exit(status)
