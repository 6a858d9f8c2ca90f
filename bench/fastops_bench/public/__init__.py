"""The public functions and methods that eager programs call, with a plain call of each.

`inventory` finds what the running TensorFlow has, `families` has the calls, `without` why some have
none, `inputs` what the calls are made on, and `results` says whether two calls gave the same.
"""
