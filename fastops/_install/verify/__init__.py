"""`install(verify=...)`: calls that replacements make are made in TensorFlow's way, too.

`engine` makes them, `effects` says what a call of each kind may change, and puts that back between
the two ways, `comparison` finds the first difference, and `results` counts.
"""
