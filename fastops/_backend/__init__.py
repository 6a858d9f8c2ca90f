"""The implementation of `fastops.backend`: functions of ops.

`catalogue` describes each function. `below` has the parts of which the functions are made. `state`
has the settings that are not arguments. The other modules are families of functions.
"""
