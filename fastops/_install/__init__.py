"""What replaces what in unchanged programs: `fastops.install`.

A replacement decides call by call, and hands what is out of the ordinary to the callable that it
replaced. `placement` puts replacements into their places, `targets` lists these. `upstream` looks
up all names of TensorFlow, Keras and tf_keras before anything rests on them. What runs one op is
replaced by `intercept`, with `operators` for data; `public`, `gradients`, `helpers` and `keras` are
packages, `tapes`, `variables`, `construction` of variables and `traced` one module each. What runs
traced functions lives in `_plans`.
"""
