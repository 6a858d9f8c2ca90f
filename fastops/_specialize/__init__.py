"""Learn what a call does, guard what that depended on, and do it again without Python.

A call of TensorFlow or Keras that is written in Python decides by its arguments, by attributes and
by global variables which ops it runs. The first calls of a signature run as ever and are timed
(`policy`). Once a recording pays, a call is recorded (`recording`): the ops that it ran, and the
tensor values that Python read. Later calls of the signature whose guards hold (`guards`) replay the
recording (`replay`), as kernels alone where all of them are known (`native`).

A `Specialization` (`specialization`) is what is known of one signature. Its states:

=========  =========================================================================================
State      Meaning
=========  =========================================================================================
WAITING    calls run in Python and charge an account; a recording does not pay yet
RECORDED   one call has been recorded; a second one has to confirm it (objects, variables)
ACTIVE     calls whose guards hold are replayed: a *hit*. If a guard does not hold, Python runs: a
           *miss*. After many misses in a row the recordings are dropped: it is *deoptimized*
REFUSED    calls cannot be recorded, and run in Python; `reason` says why
=========  =========================================================================================

Functions, methods of Keras's objects, variables, batches and sessions are adapters: they say how a
call is read (`signatures`) and recorded, and keep specializations in a `cache`. `trial` runs what
has been learned on copies, and compares, before it counts.
"""
