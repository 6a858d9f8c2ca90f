"""Traced functions, and what replays them: `fastops.function`.

From a function's executed graph to an order of steps (`schedule`), to kernels that run it (`plan`),
to calls that find their plan by what their arguments have in common.
"""
