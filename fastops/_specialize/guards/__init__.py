"""What recordings depend on, compared before each replay.

`names` compares what the code of libraries looks up in modules and classes; `watch` what objects
hold, and what code of users asks its modules. `places` lists what an object holds, each place with
its path; `discovery` finds out which guards the code that ran in a call needs.
"""
