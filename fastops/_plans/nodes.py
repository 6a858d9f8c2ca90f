"""Nodes of executed graphs: the kinds of ops that plans distinguish, and references of nodes."""

ARGUMENTS = frozenset({"_Arg", "_DeviceArg"})
RESULTS = frozenset({"_Retval", "_DeviceRetval"})
COPIES = frozenset({"Identity", "Enter", "Exit", "NextIteration", "LoopCond", "StopGradient"})
"""Ops whose output is their input."""

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
"""Stateful ops that a plan runs: all kernels reach the state through the same handle."""

WAITING = frozenset({"IteratorGetNext", "IteratorGetNextAsOptional"})
"""Ops that may wait for other threads, including Python threads."""

PYTHON = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
"""Ops that run Python. All kernels find the Python function by its token, in one table."""

_CALLS = """
Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile While
"""
CALLS = frozenset(_CALLS.split())
"""Ops that call functions which TensorFlow has not inlined. TensorFlow runs these functions."""

_HARMLESS = "Assert ReadVariableOp ResourceGather ResourceGatherNd VarIsInitializedOp VariableShape"
HARMLESS = frozenset(_HARMLESS.split())
"""Stateful ops that may run a second time, since they change no state."""

SWITCHES = frozenset({"Switch", "_SwitchN"})

PRIVATE = ("_EagerConst", "_Fused", "_Mkl", "_UnaryOpsComposition")
"""Prefixes of the private ops that TensorFlow's graph passes make and that plans support."""

_UNPLANNED = "FakeParam HostConst Placeholder PlaceholderWithDefault RefSwitch RefMerge XlaLaunch"
UNPLANNED = frozenset(_UNPLANNED.split())
"""More ops that plans do not support, beside the ops that the direct path does not support."""


def functions_of(node):
    """Return the names of functions that a node may call, including its op."""
    attrs = node.attr.values()
    lists = (function.name for attr in attrs for function in attr.list.func)
    return {node.op, *(attr.func.name for attr in attrs if attr.HasField("func")), *lists}


def location(node):
    """Return where a node comes from, in the form that TensorFlow looks for in errors.

    A node of a function that TensorFlow has inlined comes from the node of that function.
    """
    names = node.experimental_debug_info.original_node_names
    functions = node.experimental_debug_info.original_func_names
    if not names:
        return "{{node " + node.name + "}}"
    return ", ".join(
        ("{{function_node " + functions[i] + "}}" if i < len(functions) else "")
        + "{{node "
        + name
        + "}}"
        for i, name in enumerate(names)
    )


def edges(node):
    """Return the data inputs of a node, as pairs of node and output, and its control inputs."""
    data, controls = [], []
    for text in node.input:
        if text.startswith("^"):
            controls.append(text[1:])
        else:
            name, _, output = text.partition(":")
            data.append((name, int(output or 0)))
    return data, controls
