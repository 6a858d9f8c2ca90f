"""`fastops.install`: stand-ins for callables of TensorFlow and Keras in unchanged programs.

A stand-in decides call by call. It passes calls that it does not handle to the callable that it
replaced. `targets` lists what is replaced, with ranks, and `placement` puts stand-ins there.
Before that, `upstream` looks up all names of TensorFlow, Keras and tf_keras, and `restated` checks
the code that stand-ins mirror.

==================  ================================================================================
Part                Stand-ins for
==================  ================================================================================
`intercept`         calls of ops; `operators` are those of tensors and variables
`public`            public functions of TensorFlow: for plain arguments they are one op
`replay`            public functions whose calls are recorded and replayed (`fastops._specialize`)
`gradients`         gradient functions of ops, and methods of tapes (`fastops._autodiff`)
`helpers`           helper functions of TensorFlow that libraries call, and functions that call
                    functions of users: `loops` and `bodies` make these calls
`keras`             functions of Keras's backend, layer calls, and batches of arrays
`models`            methods of Keras's objects, and calls of users' modules, which are recorded and
                    replayed
`variables`         methods of variables; `construction` is `tf.Variable` itself
`datasets`          iterators of datasets: `pipelines` makes them, `rows` and `mapped` elements
`traced`            calls of traced functions (`fastops._plans`)
==================  ================================================================================

`verify` makes each call that a stand-in handles in TensorFlow's way, too, and compares.

The parts are on ten levels. A part imports only from levels below its own, and what it loads by
name is below it, too. The contract is in ``pyproject.toml``. From the top:

1. `placement` patches stand-ins in.
2. `targets` has all callables to replace; `verify` compares calls.
3. `models` finds Keras through `keras`.
4. `keras` and `iteration` use lowerings of `public`.
5. `public` replays the calls that it does not lower.
6. `calls`, `construction`, `gradients`, `helpers`, `replay` and `variables` are made of the classes
   of level 8. `datasets` takes elements of iterators.
7. `traced` needs the base class alone, as do `planner` and `optionals`. `pipelines` makes
   iterators. `loops` calls functions for elements.
8. `bodies` knows these functions. `intercept`, with `operators`, has the classes of stand-ins that
   run ops. `answer` has the class of those that only inspect values, or call functions of users.
   `lazy` has the class of iterators that make their resource late, and `rows` makes elements from
   rows.
9. `lookups` makes guards. `target` is the class of what is replaced. `seeds` sees when TensorFlow
   drops kernels. `mapped` runs functions that pipelines map. `adapters` has steps shared by the
   stand-ins whose calls are recorded.
10. `replacement` is the base class of stand-ins, and `patch_points` puts them in. `upstream`,
    `restated`, `handlers` and `dtypes` know the names, the code, the handlers and the dtypes of
    TensorFlow. `reads` finds the names that code looks up.
"""
