"""`install(verify=...)`: each call that a replacement handles is also made by TensorFlow.

`engine` makes both calls. `effects` lists the state that a call may change, and restores it between
the two. `comparison` finds the first difference, and `results` counts. `description` describes the
call in messages.
"""
