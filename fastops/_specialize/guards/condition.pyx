"""What all guards can do: tell whether they hold, what they compare, and what differs."""


cdef class Condition:
    """The base class of guards.

    Each class defines `hold`, which compiled code calls, `paths` and `differences`. Paths are
    written as code would write them.
    """

    cdef bint hold(self) except -1:
        raise NotImplementedError

    def holds(self):
        """Tell whether everything that the guard compares is as expected."""
        return self.hold()

    def paths(self):
        """Return the paths of what is compared."""
        raise NotImplementedError

    def differences(self):
        """Return an iterable of what differs now, as texts with paths."""
        raise NotImplementedError

    def differs(self):
        """Return all that differs now, as one text; None if nothing does."""
        return ", ".join(self.differences()) or None

    def change(self):
        """Return the first difference that is found now; None if there is none."""
        for difference in self.differences():
            return difference
        return None
