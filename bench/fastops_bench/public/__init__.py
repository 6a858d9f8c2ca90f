"""The public functions and methods that eager programs call, with a plain call of each.

`inventory` finds the names in the running TensorFlow. `families` has the calls, `without` the
reasons why some names have none, and `inputs` the arguments of calls. `results` compares the
outcomes of calls.
"""
