"""Nodes of executed graphs: the kinds of ops that plans tell apart, and what a node refers to."""

ARGUMENTS = frozenset({"_Arg", "_DeviceArg"})
RESULTS = frozenset({"_Retval", "_DeviceRetval"})
COPIES = frozenset({"Identity", "Enter", "Exit", "NextIteration", "LoopCond", "StopGradient"})
"""Ops that hand on their input."""

_STATEFUL = """
Assert AssignAddVariableOp AssignSubVariableOp AssignVariableOp IteratorGetNext
IteratorGetNextAsOptional PrintV2 ReadVariableOp
ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad ResourceApplyAdagradV2
ResourceApplyAdam ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp
ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent ResourceApplyKerasMomentum
ResourceApplyMomentum ResourceApplyPowerSign ResourceApplyProximalAdagrad
ResourceApplyProximalGradientDescent ResourceApplyRMSProp ResourceGather ResourceGatherNd
ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin ResourceScatterMul
ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate ResourceScatterSub
ResourceScatterUpdate ResourceSparseApplyAdagrad ResourceSparseApplyAdagradV2
ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceStridedSliceAssign
RngReadAndSkip RngSkip StatefulRandomBinomial StatefulStandardNormalV2 StatefulTruncatedNormal
StatefulUniform StatefulUniformFullInt StatefulUniformInt VarIsInitializedOp VariableShape
"""
STATEFUL = frozenset(_STATEFUL.split())
"""Stateful ops that a plan runs: their state is behind a handle, which every kernel shares."""

WAITING = frozenset({"IteratorGetNext", "IteratorGetNextAsOptional"})
"""Ops that may wait for other threads, those of Python among them."""

_CALLS = """
Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile While
"""
CALLS = frozenset(_CALLS.split())
"""Ops that call functions, where TensorFlow has not put these in their places. It runs them."""

_HARMLESS = "Assert ReadVariableOp ResourceGather ResourceGatherNd VarIsInitializedOp VariableShape"
HARMLESS = frozenset(_HARMLESS.split())
"""Stateful ops that may run again."""

SWITCHES = frozenset({"Switch", "_SwitchN"})

PRIVATE = ("_EagerConst", "_Fused", "_Mkl", "_UnaryOpsComposition")
"""How the names of those ops begin that TensorFlow's passes make, and a plan runs."""

_UNPLANNED = "FakeParam HostConst Placeholder PlaceholderWithDefault RefSwitch RefMerge XlaLaunch"
UNPLANNED = frozenset(_UNPLANNED.split())
"""Ops that are TensorFlow's to run, beside those that are in an eager call."""


def functions_of(node):
    """Return the names that a node may call functions by, its op's among them."""
    attrs = node.attr.values()
    lists = (one.name for attr in attrs for one in attr.list.func)
    return {node.op, *(attr.func.name for attr in attrs if attr.HasField("func")), *lists}


def edges(node):
    """Return the inputs of a node as pairs of node and output, and the nodes that it waits for."""
    data, controls = [], []
    for text in node.input:
        if text.startswith("^"):
            controls.append(text[1:])
        else:
            name, _, output = text.partition(":")
            data.append((name, int(output or 0)))
    return data, controls
