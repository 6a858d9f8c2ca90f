"""The surroundings of a program: ``python -m fastops``, its commands, the environment, IPython.

This package imports no module itself, since `launch` must run before TensorFlow is imported.
"""
