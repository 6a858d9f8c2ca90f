"""Says how far a build has come."""

import sys
from contextlib import suppress
from time import perf_counter


class Progress:
    """Writes a line for each step, and where pip keeps those for itself, beside pip's own line.

    Parameters
    ----------
    terminal
        The terminal's name. It is used if the output goes elsewhere.
    """

    def __init__(self, terminal="/dev/tty"):
        self._start = perf_counter()
        self._terminal = None
        if not sys.stdout.isatty():
            with suppress(OSError):  # nobody is looking
                self._terminal = open(terminal, "w")  # noqa: SIM115  (closed by `end`)

    def say(self, text):
        """Write a line."""
        print(f"{text}  ({perf_counter() - self._start:.0f} s)", flush=True)
        self._beside(f" {text}")

    def end(self):
        """Take away what was written beside pip's line."""
        if self._terminal is not None:
            self._beside("")
            self._terminal.close()

    def _beside(self, text):
        # Save the cursor, write, erase the rest of the line, and go back: pip's spinner turns on.
        if self._terminal is not None:
            self._terminal.write(f"\0337{text}\033[K\0338")
            self._terminal.flush()
