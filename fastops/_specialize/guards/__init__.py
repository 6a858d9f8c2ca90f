"""The guards of recordings, which are compared before each replay.

All guards are a `condition.Condition`: ``holds()`` tells whether everything is as expected, and
``differs()`` where something is not, by its path in the source. Compiled code calls ``hold``.

`names` compares the objects that library code looks up in modules and classes. `watch` compares the
contents of objects, and the objects that user code looks up in modules. `places` lists the contents
of an object, each place with its path. `template` compares the contents of an object with those of
another one of its class. `discovery` finds out which guards the code that ran in a
call needs.
"""
