"""Says how far a build has come."""

import sys
from time import perf_counter


class Progress:
    """A line for each module, and where pip keeps those for itself, a word at its own line."""

    def __init__(self):
        self._start = perf_counter()
        self._terminal = None
        if not sys.stdout.isatty():
            try:
                self._terminal = open("/dev/tty", "w")  # noqa: SIM115  (closed by `end`)
            except OSError:  # nobody is looking
                pass

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
