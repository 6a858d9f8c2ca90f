"""The lock that ops are loaded under, at their first use."""

import os
import threading

LOCK = threading.RLock()
"""Held while the registry is read, modules of `fastops.gen` are imported and ops made."""

# A fork waits until nobody loads: the child would find locks held by threads that it has not got,
# those of the import system and of TensorFlow's registry among them.
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
