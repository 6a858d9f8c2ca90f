"""The lock that is held while an op is loaded, at its first use."""

import os
import threading

LOCK = threading.RLock()
"""Held while the registry is read, modules of `fastops.gen` are imported and ops made."""

# A fork waits until no thread loads an op. Otherwise the child would inherit locks whose threads it
# does not have, such as those of the import system and of TensorFlow's registry.
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
