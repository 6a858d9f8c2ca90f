"""`tf.nest`."""

TEXT = """
tf.nest.assert_same_structure({"a": x, "b": [y, t]}, {"a": t, "b": [t, t]})
tf.nest.flatten({"a": x, "b": [y, (t, u)]})
tf.nest.is_nested([x])
tf.nest.map_structure(lambda one, other: one, [x, {"a": y}], [t, {"a": u}])
tf.nest.pack_sequence_as({"a": x, "b": [y, t]}, [t, t, t])
"""
