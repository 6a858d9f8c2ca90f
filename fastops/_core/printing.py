"""The base class of reports that print as tables."""

import io

from rich.console import Console

_WIDTH = 120


class Printed:
    """An object whose ``str`` and ``repr`` are its rendering by rich."""

    def __str__(self):
        console = Console(file=io.StringIO(), width=_WIDTH, color_system=None)
        console.print(self)
        lines = console.file.getvalue().splitlines()
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    __repr__ = __str__
