"""Keras's layers and models under `fastops.install`: what users may say of their own.

Calls of Keras's own layers, models, losses, metrics and optimizers are recorded once and replayed.
A ``call`` that a user writes runs as Python, unless it is declared to be pure.
"""

from fastops._install.models.declared import replay, replayable

__all__ = ["replay", "replayable"]
