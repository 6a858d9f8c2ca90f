"""Keras 3's TensorFlow backend, function by function, at the cost of its kernels.

`table` says which of its functions run as fastops's and which are Keras's own, and why; `stand_ins`
makes the former of the latter, `draws` those that draw random numbers. `fastops.backend.keras` has
the names.
"""
