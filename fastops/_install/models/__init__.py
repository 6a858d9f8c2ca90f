"""Methods of Keras's and tf_keras's objects whose calls are recorded and replayed.

What such a call runs depends on its arguments, on what the object holds, and on Keras's settings.
`method` is the stand-in for the methods that `targets` names. `receivers` finds what is known about
the object of a call, and `learning` records a call. `scopes` reads the settings that Keras keeps
for a thread, `library` names the attributes that no recorded call reads, and `declared` has the
classes of users that are declared to be replayable. What is known about objects is in
`fastops._specialize.objects`, the guards are in `fastops._specialize.guards`.
"""

import sys


def methods():
    """Return the live stand-ins for methods."""
    module = sys.modules.get("fastops._install.models.method")
    return module.methods() if module is not None else []
