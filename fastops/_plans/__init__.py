"""Traced functions and their plans: `fastops.function`.

A call passes through these classes:

- `function.Function` is the object that programs call. It is a `Plans`: a traced function with its
  plans.
- `caller.Caller`, the base of `Plans`, reads the signature of the call (dtypes, shapes, numbers,
  structure) and finds the `FunctionCase` of this signature.
- `case.FunctionCase` is what is known about the calls of a signature. Its `case.Bound` collects the
  tensors that the graph takes: leaves of the arguments, or constants. It packs the graph's results
  into the function's result.
- `runner.Runner` chooses between the plan and TensorFlow. Its derived class `planned.Planned` holds
  a trace, and makes the decisions that most calls do not need. Several signatures may
  share one `Planned`.
- `plan.Plan` is the executed graph as steps with prepared kernels. ``_cpp/plan.h`` runs it.

TensorFlow makes the first call of a signature. Then `plans.Plans.prepare` binds the arguments a
second time, with `leaves` in the places of the tensors, and makes the `Bound`. For a new trace it
also makes the `Planned`, which asks TensorFlow for the executed graph and makes a `Plan` of it:

- `eligibility` refuses graphs with `nodes` that plans cannot run;
- `schedule` puts the nodes into an order of `steps`, by the edges that `dataflow` finds;
- `liveness` finds out when values are no longer needed.

`repeated.RepeatedTrace` calls a trace that fastops has kept, with other tensors in the places of
the captured ones: by TensorFlow, and by a `Planned` once that pays.

`packing` makes the function's result, `observers` reports calls to profiles, and `description`
shows the steps of plans.
"""
