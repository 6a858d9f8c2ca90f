"""Public functions of TensorFlow whose calls are recorded and replayed.

Such a function chooses its ops by the dtypes, shapes and Python values of its arguments, and
perhaps by tensor values that its Python reads. `functions` names them, `targets` are their patch
points, and `replayed` is the stand-in. How calls are recorded and replayed is in
`fastops._specialize`.
"""
