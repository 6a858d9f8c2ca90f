"""Keras's layers and models under `fastops.install`: what users may say of their own.

Calls of Keras's own layers, models, losses, metrics and optimizers are recorded once and replayed.
A ``call`` that a user writes runs as Python, unless its code shows that it is pure, or a user has
declared it.
"""

from fastops._install.models.declared import replay, replayable

__all__ = ["replay", "replayable"]
