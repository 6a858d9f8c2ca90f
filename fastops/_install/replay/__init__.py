"""Public functions whose calls are recorded once, op by op, and replayed afterwards.

A function of TensorFlow's that is written in Python decides by its arguments' dtypes, shapes and
Python values which ops it runs. `recorder` notes those of one call, with every value of a tensor
that Python looked at; `recording` keeps what later calls have to run and to check; `replay` runs
it. `functions` names the functions that nothing else decides about.
"""
