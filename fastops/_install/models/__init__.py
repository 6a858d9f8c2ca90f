"""Calls of objects of Keras's own, models and optimizers for instance, recorded once and replayed.

So are those of tf_keras's optimizers. What such a call runs depends on its arguments, on what the
object holds, and on Keras's settings.
`places` lists what an object holds, directly and indirectly, and `watch` tells whether that is as
it was; `witness` notes which Python runs in a call that is recorded, and with it whose globals
matter; `library` knows which code is Keras's; `scopes` reads the settings of a thread; `method`
stands in for the methods that `targets` names.
"""

import sys


def methods():
    """Return the methods that live of those that stand in for others."""
    module = sys.modules.get("fastops._install.models.method")
    return module.methods() if module is not None else []
