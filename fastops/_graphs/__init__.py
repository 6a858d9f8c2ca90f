"""The implementation of `fastops.graph`: graphs that programs build, load and run themselves.

The package `_plans` makes their plans. A session (`session`) recognizes repeated calls (`calls`).
Each set of feeds and fetches is a `step`, which runs a `part` of the graph. A plan runs the part
(`planned`) after a `trial` has shown that it computes the same as TensorFlow. `resources` looks up
the variables of the session, and `accesses` checks that the graph defines the order in which they
are accessed.

A saved model (`saved`) is read as a `definition`, and loaded as a `saved_model` or as a `frozen`
graph. Each `signature` of it becomes a `model`; its `contract` checks the inputs of calls.
"""
