"""What replaces what in unchanged programs: `fastops.install`.

Targets, the public functions they come down to, operators, gradients, tapes, variables; Keras's in
`keras`. A replacement decides call by call, and hands what is out of the ordinary to the callable
that it replaced. What runs traced functions lives in `_plans`.
"""
