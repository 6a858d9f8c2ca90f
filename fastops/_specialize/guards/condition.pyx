"""What all guards can do: tell whether they hold, and what differs."""


cdef class Condition:
    """The base class of guards. Compiled code calls `hold`, which each of them defines."""

    cdef bint hold(self) except -1:
        raise NotImplementedError

    def holds(self):
        """Tell whether everything that the guard compares is as expected."""
        return self.hold()

    def differs(self):
        """Return where something differs: paths as code would write them. None if nothing does."""
        raise NotImplementedError
