"""What `fastops.backend` names: functions of ops, and what each of them adds.

`catalogue` says of each what it is, `below` what they are made of. `state` has what no argument
says; the others are families of functions.
"""
