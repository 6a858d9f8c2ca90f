"""Stand-ins for the functions of Keras 3's TensorFlow backend, with little overhead.

`table` says which functions have stand-ins, which are Keras's own, and why. `stand_ins` makes the
stand-ins of Keras's functions; `draws` makes those of functions that draw random numbers.
`fastops.backend.keras` has the public names.
"""
