"""Record the ops of a call, guard the recording's assumptions, and replay it without Python.

The Python code of TensorFlow and Keras decides by arguments, attributes and global variables which
ops a call runs. The first calls of a signature run in Python and are timed (`policy`). Once a
recording pays, a call is recorded (`recording`): the ops that it ran, and the tensor values that
Python read. Later calls of the signature replay the recording (`replay`) if its guards hold
(`guards`). If the kernels of all its ops are known, the replay runs only these (`native`).

A `Specialization` (`specialization`) is the knowledge about one signature. Its states:

=========  =========================================================================================
State      Meaning
=========  =========================================================================================
WAITING    calls run in Python and charge an account; a recording does not pay yet
RECORDED   one call has been recorded; a second one has to confirm it (objects, variables)
ACTIVE     calls whose guards hold are replayed: a *hit*. If a guard does not hold, Python runs: a
           *miss*. If the guards of globals and of their contents, which all recordings of the
           signature share, fail many times in a row, the recordings are dropped: it is
           *deoptimized*. Misses by other guards drop nothing
REFUSED    calls cannot be recorded, and run in Python; `reason` says why
=========  =========================================================================================

The stand-ins for functions and for methods of objects are adapters. They read the signature
of a call (`signatures`), record the call, and keep specializations in a `cache`; `objects` has what
is known about the objects of methods. Before a recording of a method is used, `trial` runs it on
copies of the variables and compares the results.

The stand-ins for variables, for datasets of arrays and for sessions record no ops, nor do those for
datasets that map functions. They learn from what TensorFlow makes in the first calls of a kind
(`learned`), with the same states. Traced functions record no ops either: their plans are made from
graphs (`fastops._plans.case`).
"""
