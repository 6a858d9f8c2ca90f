"""`fastops.install`: stand-ins for callables of TensorFlow and Keras in unchanged programs.

A stand-in decides call by call. It passes calls that it does not handle to the callable that it
replaced. `targets` lists the patch points, and `placement` puts stand-ins there. Before that,
`upstream` looks up all names of TensorFlow, Keras and tf_keras, and `restated` checks the code that
stand-ins mirror.

==================  ================================================================================
Part                Stand-ins for
==================  ================================================================================
`intercept`         calls of ops; `operators` are those of tensors and variables
`public`            public functions of TensorFlow: for plain arguments they are one op
`replay`            public functions whose calls are recorded and replayed (`fastops._specialize`)
`gradients`         gradient functions of ops, and methods of tapes (`fastops._autodiff`)
`helpers`           helper functions of TensorFlow that libraries call
`keras`             functions of Keras's backend, layer calls, and batches of arrays
`models`            methods of Keras's objects, whose calls are recorded and replayed
`variables`         methods of variables; `construction` is `tf.Variable` itself
`traced`            calls of traced functions (`fastops._plans`)
==================  ================================================================================

`verify` makes each call that a stand-in handles in TensorFlow's way, too, and compares.
"""
