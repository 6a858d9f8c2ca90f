"""Graphs that programs build, load and run themselves: what is behind `fastops.graph`.

Their plans are those of `_plans`. A session (`session`) knows its calls again (`calls`). Each set
of feeds and fetches is a `step`: it runs a `part` of the graph, by a plan that is `planned` for
sessions, once a `trial` has shown that this does what TensorFlow does. The session's variables are
found in `resources`, and `accesses` tells whether the graph says in which order they are accessed.

A saved model (`saved`) is read as a `definition` and loaded as a `saved_model` or a `frozen` graph.
Each `signature` of it becomes a `model`, whose calls keep a `contract`.
"""
