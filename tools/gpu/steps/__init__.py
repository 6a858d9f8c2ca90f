"""The steps of the proof, a module each: they run on the machine with the GPU, in the tree there.

Each has a function `run`, which is given a `request.Request` and returns a `request.Findings`.
"""
