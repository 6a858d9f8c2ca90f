"""Around a program: ``python -m fastops``, its commands, the environment, IPython.

Imports nothing by itself: `launch` must run before TensorFlow is imported.
"""
