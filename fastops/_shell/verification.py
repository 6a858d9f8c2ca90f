"""Parses the values of ``FASTOPS_VERIFY`` and ``--verify``. It must not import other modules."""


def parse(text):
    """Return the mode and the number N of "one call in N" for a value of ``FASTOPS_VERIFY``.

    Parameters
    ----------
    text : str
        ``"0"``, ``"1"``, ``"raise"`` or ``"warn"``. With a colon and a number N after it, one call
        in N is verified.

    Examples
    --------
    >>> from fastops._shell.verification import parse
    >>> parse("warn:10")
    ('warn', 10)
    """
    mode, colon, number = text.partition(":")
    modes = {"0": None, "1": "raise", "raise": "raise", "warn": "warn"}
    if mode not in modes or (colon and not (number.isdecimal() and int(number) > 0)):
        raise ValueError(
            "FASTOPS_VERIFY must be 0, 1, raise or warn, or, to verify one call in ten, "
            f"raise:10 or warn:10; not {text!r}"
        )
    return modes[mode], int(number) if colon else 1
