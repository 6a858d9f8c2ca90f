"""Traced functions, and what replays them: `fastops.function`.

The way of a call, from the program's line to the kernels:

- `function.Function` is what programs call, and a `Plans`: the traced function with its plans;
- `caller.Caller`, its base, reads the call's signature (dtypes, shapes, numbers, structure) and
  finds the `Case` of all calls alike;
- `caller.Case` picks the tensors that the graph takes, of the arguments' or constant ones, and
  packs the graph's results into what the function returns;
- `runner.Runner` decides whether the plan or TensorFlow runs the call. A `planned.Planned` is one:
  a trace, with the decisions that calls rarely need; cases of several signatures may share it;
- `plan.Plan` is the executed graph as steps with prepared kernels, which ``_cpp/plan.h`` runs.

TensorFlow makes the first call of a signature. `plans.Plans.prepare` then binds it once more, with
`leaves` in the places of its tensors, and makes the `Case` and, for a new trace, the `Planned`,
which asks TensorFlow for the executed graph and makes it a `Plan`: `schedule` puts its `nodes` into
an order of `steps`, unless `eligibility` says that TensorFlow is to run them; `dataflow` knows who
takes what of whom, and `liveness` until when.

`packing` is about results, `observers` tells profiles what runs, `description` what plans are made
of.
"""
