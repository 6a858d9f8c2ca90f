"""The steps of the proof, one module each. They run in the tree on the machine with the GPU.

Each module has a function `run`, which takes a `request.Request` and returns a `request.Findings`.
"""
