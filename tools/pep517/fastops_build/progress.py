"""Show the progress of a build."""

import sys
from contextlib import suppress
from time import perf_counter


class Progress:
    """Writes a line for each step; if pip hides output, writes beside pip's own line.

    Parameters
    ----------
    terminal
        The name of the terminal. It is used if the output is redirected.
    """

    def __init__(self, terminal="/dev/tty"):
        self._start = perf_counter()
        self._terminal = None
        if not sys.stdout.isatty():
            with suppress(OSError):  # there is no terminal
                self._terminal = open(terminal, "w")  # noqa: SIM115  (closed by `end`)

    def say(self, text):
        """Write a line."""
        print(f"{text}  ({perf_counter() - self._start:.0f} s)", flush=True)
        self._beside(f" {text}")

    def end(self):
        """Erase the text beside pip's line."""
        if self._terminal is not None:
            self._beside("")
            self._terminal.close()

    def _beside(self, text):
        # Save the cursor, write, erase the rest of the line, and restore the cursor for pip's
        # spinner.
        if self._terminal is not None:
            self._terminal.write(f"\0337{text}\033[K\0338")
            self._terminal.flush()
