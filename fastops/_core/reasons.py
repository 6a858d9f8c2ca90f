"""The paths that a call may take, and all reasons why something was left to TensorFlow or Keras.

`REGISTRY` has all reasons. Those of calls of ops are also in `REASONS`: `reasons.pxd` numbers them,
in the same order. The others concern everything that is made for later calls: plans of functions
and sessions, and recordings of functions and of methods of objects. `fastops.stats` counts
by ids. The particulars (a path, a class, an op) stand beside the sentence and not in it.
tools/reasons.py writes the tables of docs/semantics.md.
"""

import re
from typing import NamedTuple

PATHS = ("direct", "capi", "tensorflow")


class Reason(NamedTuple):
    """Why a call took its path, or why something is not made for later calls.

    Attributes
    ----------
    id : str
        A name, which stays the same in later versions.
    area : str
        One of `AREAS`.
    sentence : str
        The reason in words, without particulars.
    hint : str
        What it means, or what a user can do; "" if the sentence says all.
    path : str
        For calls of ops: the path that the call takes, one of `PATHS`, or a text if it varies.
    """

    id: str
    area: str
    sentence: str
    hint: str = ""
    path: str = ""


AREAS = {
    "op": "calls of ops",
    "surroundings": "what surrounds a call",
    "function": "calls of traced functions",
    "graph": "graphs that get no plan",
    "session": "runs of sessions that get no plan",
    "kind": "objects that TensorFlow makes itself: variables, datasets of arrays, mapped elements",
    "method": "calls that may be replayed: of methods of objects, and of functions",
    "public": "calls of public functions",
    "call": "what a recorded call does",
    "proof": "code of users that is not shown to be pure",
    "object": "what a recorded object holds",
    "code": "what recorded code may read",
    "recording": "recordings of functions and methods",
    "install": "stand-ins that are left out",
}
"""What reasons are about."""

REGISTRY = {
    reason.id: reason
    for reason in (
        Reason(
            "direct",
            "op",
            "the call ran its prepared kernel",
            "nothing",
            "direct",
        ),
        Reason(
            "first_call",
            "op",
            "no kernel was prepared for this op, these dtypes and attributes yet",
            "nothing: this happens once for each key; if there are many, an attribute, a dtype or "
            "a device scope changes in each call: `explain` shows which",
            "tensorflow",
        ),
        Reason(
            "op",
            "op",
            "the op, or an attribute of the call, is excluded from the direct path",
            "nothing: [Coverage](coverage.md) has the reason, op by op",
            "capi",
        ),
        Reason(
            "options",
            "op",
            "fastops.options(path=...) asks for another path",
            "leave `path` alone, and `FASTOPS_PATH`",
            "as asked",
        ),
        Reason(
            "graph",
            "op",
            "a graph is being built",
            "nothing: the op adds its node to the graph",
            "tensorflow",
        ),
        Reason(
            "context",
            "op",
            "TensorFlow's eager context is not initialised, or was replaced",
            "nothing: fastops prepares the kernels again",
            "tensorflow",
        ),
        Reason(
            "remote",
            "op",
            "the context is connected to other hosts",
            "nothing: with a cluster TensorFlow makes all calls",
            "tensorflow",
        ),
        Reason(
            "callbacks",
            "op",
            "op callbacks are registered",
            "turn off `tf.debugging.enable_check_numerics`, dumps, or other code that registered a "
            "callback",
            "tensorflow",
        ),
        Reason(
            "async",
            "op",
            "the thread's executor is asynchronous",
            "keep `tf.config.experimental.set_synchronous_execution` at true",
            "capi",
        ),
        Reason(
            "observed",
            "op",
            "placement logging, memory logging, the profiler or TF_NODE_FILE_WRITER is on",
            "end the profiler's session; turn off `set_log_device_placement`",
            "capi",
        ),
        Reason(
            "arguments",
            "op",
            "an argument is missing, unknown or positional",
            "pass every argument by its name",
            "tensorflow",
        ),
        Reason(
            "input_type",
            "op",
            "an input is not a tensor, variable, array, number, string, or a list of these",
            "pass a dense eager tensor; TensorFlow handles ragged, sparse and symbolic tensors",
            "tensorflow",
        ),
        Reason(
            "input_device",
            "op",
            "an input lives on another device",
            "copy the input to the host, if small calls on it matter",
            "capi",
        ),
        Reason(
            "input_state",
            "op",
            "an input is remote, packed, not computed yet, or failed",
            "nothing",
            "capi",
        ),
        Reason(
            "conversion",
            "op",
            "an input could not be converted to a tensor",
            "pass a tensor, or an array of the op's dtype",
            "tensorflow",
        ),
        Reason(
            "attr_value",
            "op",
            "an attribute's value cannot be encoded or compared",
            "pass plain Python values, dtypes, lists",
            "tensorflow",
        ),
        Reason(
            "dtype",
            "op",
            "an input or output is a resource or variant",
            "nothing",
            "capi",
        ),
        Reason(
            "device",
            "op",
            "TensorFlow places the call on another device",
            'use `with tf.device("CPU:0")`, if small calls matter; on plugins do not set '
            "`FASTOPS_DEVICES`",
            "capi",
        ),
        Reason(
            "kernel",
            "op",
            "there is no synchronous kernel for these dtypes, or it cannot be prepared",
            "use another dtype",
            "capi",
        ),
        Reason(
            "kernel_error",
            "op",
            "the kernel reported an error, and TensorFlow ran the call again",
            "see the exception, which TensorFlow raised",
            "tensorflow",
        ),
        Reason("tape_open", "surroundings", "a tape or an accumulator records"),
        Reason(
            "device_scope",
            "surroundings",
            "a device scope is open",
            'the scope of the only device, such as `tf.device("/CPU:0")`, is no such reason',
        ),
        Reason(
            "device_choice",
            "surroundings",
            "TensorFlow has several devices to choose from",
        ),
        Reason(
            "strategy_scope",
            "surroundings",
            "a scope of a distribution strategy is open",
            "calls are replayed in the replica of the default strategy, but not in its scope",
        ),
        Reason("graph_scope", "surroundings", "a scope of a graph is open"),
        Reason(
            "functions_run_eagerly",
            "surroundings",
            "functions are set to run eagerly",
            "`tf.config.run_functions_eagerly(False)` ends that",
        ),
        Reason(
            "dtype_promotion",
            "surroundings",
            "NumPy-style dtype promotion is on",
            "`tf.experimental.numpy.experimental_enable_numpy_behavior` has turned it on",
        ),
        Reason("cancellation", "surroundings", "a cancellation manager is active"),
        Reason("export", "surroundings", "a SavedModel is being exported"),
        Reason(
            "signature_new",
            "function",
            "this is the first call of its signature",
            "TensorFlow makes it, and traces",
        ),
        Reason(
            "plan_not_due",
            "function",
            "a plan would not pay yet",
            "under `install`: the calls so far have cost less than the bar of a plan",
        ),
        Reason("executor_chosen", "function", 'executor="tensorflow" was requested'),
        Reason(
            "argument_type",
            "function",
            "an argument has a type that signatures do not support",
            "pass tensors, arrays, variables, numbers, strings, objects without `__eq__`, "
            "or structures of these",
        ),
        Reason(
            "argument_converted",
            "function",
            "TensorFlow converts an argument",
            "pass it as what the signature asks for",
        ),
        Reason(
            "binding_failed",
            "function",
            "binding the arguments to the trace failed",
            "TensorFlow makes the calls",
        ),
        Reason(
            "context_changed",
            "function",
            "TensorFlow's context has changed",
            "fastops makes the plan again",
        ),
        Reason(
            "timing",
            "function",
            "the plan is timed against TensorFlow's executor",
            "calls above 100 us are timed on both sides",
        ),
        Reason(
            "executor_faster",
            "function",
            "TensorFlow's executor is faster than the plan",
            "it runs independent nodes side by side",
        ),
        Reason(
            "plan_failed",
            "function",
            "the plan has failed",
            "TensorFlow's function runs, and raises",
        ),
        Reason(
            "node_unsupported",
            "graph",
            "plans do not support an op",
            "a placeholder, a launch of XLA, a constant of the host",
        ),
        Reason(
            "node_excluded",
            "graph",
            "an op is excluded from plans",
            "[Coverage](coverage.md) has the reason",
        ),
        Reason(
            "node_reference",
            "graph",
            "an op takes reference variables of TensorFlow 1",
            "use resource variables",
        ),
        Reason(
            "node_functions",
            "graph",
            "an op calls functions",
            "plans support functions in control flow and in calls only",
        ),
        Reason(
            "python_waits",
            "graph",
            "a function runs Python, and has nodes that wait for other threads",
            "the next batch of a dataset, or a function that TensorFlow has not inlined",
        ),
        Reason("python_device", "graph", "a function runs Python, and is placed on another device"),
        Reason(
            "function_missing", "graph", "an op calls a function that the context does not have"
        ),
        Reason(
            "node_seeded",
            "graph",
            "a random op has a seed: its sequence belongs to TensorFlow's kernel",
            "install fastops before the program sets its global seed",
        ),
        Reason("node_state", "graph", "an op has a state that a second kernel would not share"),
        Reason("node_unreadable", "graph", "a constant cannot be read"),
        Reason(
            "kernel_missing",
            "graph",
            "the kernel of an op cannot be made",
            "the text ends with TensorFlow's message",
        ),
        Reason("tensorflow_error", "graph", "TensorFlow reports an error for the graph"),
        Reason("xla", "graph", "the function is compiled by XLA", "`jit_compile=True`"),
        Reason("deferred_captures", "graph", "the function has deferred captures"),
        Reason("output_dtype", "graph", "the function returns a resource or variant"),
        Reason(
            "input_dtype",
            "graph",
            "the function takes a resource or variant that is not a variable",
        ),
        Reason("input_not_on_host", "graph", "an input is not on the host"),
        Reason(
            "input_not_computed",
            "graph",
            "an input has not been computed yet, or its computation has failed",
        ),
        Reason(
            "argument_device",
            "graph",
            "an argument is on another device than the nodes",
            "it would have to be copied there",
        ),
        Reason(
            "several_devices",
            "graph",
            "the function runs on several devices",
            "this counts integers that move from host memory to another device",
        ),
        Reason("device_unknown", "graph", "the nodes are on no device, or on several"),
        Reason("device_remote", "graph", "the graph is placed on a remote device"),
        Reason("device_kind", "graph", "plans do not support this kind of device", "a GPU"),
        Reason(
            "node_on_device",
            "graph",
            "plans do not support an op on this device",
            "an asynchronous kernel, say",
        ),
        Reason("kernel_inputs", "graph", "the inputs of an op do not match its kernel"),
        Reason(
            "memory_moves",
            "graph",
            "an op would copy its value between host memory and device memory",
        ),
        Reason(
            "nothing_direct",
            "graph",
            "this thread runs no kernels of fastops",
            "its executor is asynchronous, or ops are observed",
        ),
        Reason("results_missing", "graph", "the graph does not have all results"),
        Reason("cycle", "graph", "the graph has a cycle that is not a loop of TensorFlow's"),
        Reason("loop_condition", "graph", "a loop has no single condition"),
        Reason("not_a_function", "session", "the part of the graph cannot be made a function"),
        Reason("not_fed", "session", "a placeholder that the fetches need is not fed"),
        Reason("fetch_dtype", "session", "a feed or fetch has a dtype that no array has"),
        Reason("node_xla", "session", "a node is compiled by XLA"),
        Reason(
            "session_state",
            "session",
            "an op has a state that belongs to the session",
            "queues, tables, random ops, reference variables",
        ),
        Reason(
            "session_python",
            "session",
            "an op runs Python",
            "the trial of a plan would run it a second time",
        ),
        Reason("written_in_loop", "session", "a variable is written in a graph that has a loop"),
        Reason(
            "variable_passed_on",
            "session",
            "a node takes or passes on a variable in a way that fastops does not follow",
        ),
        Reason("read_in_function", "session", "a function reads a variable that the graph writes"),
        Reason(
            "access_order",
            "session",
            "the graph does not define the order in which two nodes access a variable",
            "give the graph a control dependency",
        ),
        Reason("plan_fails_alone", "session", "the plan fails where TensorFlow does not"),
        Reason(
            "session_differs",
            "session",
            "the results of TensorFlow's session differ from those of the same graph as a function",
            "other optimizations change the last bits",
        ),
        Reason(
            "variables_unset",
            "session",
            "the variables had no values before the last run",
            "TensorFlow makes the run that initializes them",
        ),
        Reason(
            "kind_new",
            "kind",
            "TensorFlow makes the first objects of a kind",
            "two variables, one dataset of arrays, or the first elements of a dataset that maps "
            "functions: fastops makes later ones",
        ),
        Reason("kind_varies", "kind", "two objects of a kind differ"),
        Reason(
            "body_unusable",
            "kind",
            "only TensorFlow can call a function that a program passes to it for elements",
            "the text ends with the cause",
        ),
        Reason(
            "jacobian_unusable",
            "kind",
            "TensorFlow has to trace this jacobian in each call",
            "the text ends with the cause",
        ),
        Reason(
            "jacobian_walk",
            "kind",
            "the tape or the arguments of a jacobian are of a kind whose traces are not kept",
            "the call is made within a tape, TensorFlow has made records of the tape, or a user "
            "has written a gradient function",
        ),
        Reason("variable_not_plain", "kind", "the variable is not a plain ResourceVariable"),
        Reason("batch_elements", "kind", "the elements of Keras's dataset do not match the arrays"),
        Reason("batch_order", "kind", "the order of the rows of Keras's dataset cannot be read"),
        Reason(
            "mapped_unplanned",
            "kind",
            "no plan can run a function that a dataset maps",
            "nothing: TensorFlow's kernels run it",
        ),
        Reason(
            "mapped_differs",
            "kind",
            "the plans of mapped functions do not give the results of TensorFlow's iterator",
            "nothing: TensorFlow's kernels run the functions",
        ),
        Reason(
            "mapped_slow",
            "kind",
            "the functions that a dataset maps take long",
            "nothing: TensorFlow runs them in its threads",
        ),
        Reason(
            "walk_records",
            "kind",
            "a walk over a tape whose records have no description",
            "nothing: some of the records are of a traced function or of a custom gradient of a"
            " user, TensorFlow made some, or there are too many",
        ),
        Reason(
            "expanded",
            "kind",
            "a walk that is not replayed passes the ops of the call one by one",
            "nothing, in the first walks: see GradientTape.gradient for the reason of later ones",
        ),
        Reason(
            "walk_functions",
            "kind",
            "a walk over a tape calls a gradient function that is not known",
            "nothing: TensorFlow's gradient functions are known, others may do anything",
        ),
        Reason(
            "walk_arguments",
            "kind",
            "tape.gradient is called with arguments or for a tape that TensorFlow's method handles",
            "pass tensors and variables, alone or in a flat list, and call it after the with block",
        ),
        Reason(
            "walk_placement",
            "kind",
            "a walk makes zeros for sources that are not connected, or there are several devices",
            "nothing: TensorFlow's walk makes these zeros, and places what it makes",
        ),
        Reason(
            "gradient_tensors",
            "kind",
            "a gradient function gets tensors of a kind for which it is not replayed",
            "nothing: a gradient is an IndexedSlices, a tensor is a handle, is not on this machine,"
            " or there are too many",
        ),
        Reason(
            "walk_size",
            "kind",
            "the records of a tape keep more tensors than a replay of its walk may keep",
            "nothing: a walk drops the tensors of each record that it has passed",
        ),
        Reason(
            "user_class",
            "method",
            "the class is a user's, and its code is not shown to be pure",
            "declare it: [Accelerating Keras](keras.md#layers-and-models-of-your-own)",
        ),
        Reason("scope_open", "method", "a scope or tape is open that recordings do not support"),
        Reason(
            "method_argument_type",
            "method",
            "an argument has a type that recordings do not support",
        ),
        Reason(
            "global_changed",
            "method",
            "a global or setting that the recorded code reads has changed",
        ),
        Reason(
            "op_failed",
            "method",
            "an op of the replay has failed",
            "the original function runs, and raises",
        ),
        Reason(
            "values_decide",
            "method",
            "tensor values decide what runs, and the limit of recordings per signature is reached",
        ),
        Reason(
            "recording_not_due",
            "method",
            "a recording would not pay yet",
            "its calls have cost less than the bar: "
            "[When recordings begin](keras.md#when-recordings-begin)",
        ),
        Reason("recorded", "method", "this call was used to make a recording"),
        Reason(
            "profiler_active",
            "method",
            "a profiler, debugger or coverage tool is active (sys.setprofile)",
            "calls cannot be recorded meanwhile",
        ),
        Reason(
            "warning_raises",
            "method",
            "the call issues a warning that may raise an exception",
            "a filter makes it an error, or `warnings.showwarning` is replaced",
        ),
        Reason(
            "function_refused",
            "public",
            "too many recordings of the function have failed",
            "`describe()` of the function has the reasons",
        ),
        Reason(
            "dispatch_handler",
            "public",
            "a dispatch handler is registered for the function",
            "TensorFlow's dispatch may leave the call to it",
        ),
        Reason(
            "turn_taken",
            "public",
            "another call is being recorded",
            "fastops records one call at a time",
        ),
        Reason(
            "foreign_code",
            "call",
            "the call runs Python code of a user that is not shown to be pure",
            "the text ends with the line, one of the reasons below, and a remedy: "
            "[Accelerating Keras](keras.md#functions-of-your-own)",
        ),
        Reason(
            "foreign_c_function",
            "call",
            "the call runs a function written in C, whose effects are unknown",
        ),
        Reason(
            "numpy_random",
            "call",
            "the call draws random numbers by NumPy",
            "draw them by TensorFlow or Keras",
        ),
        Reason("sets_profiler", "call", "the call sets a profile function"),
        Reason("not_witnessed", "call", "the code that the call ran could not be observed"),
        Reason("arguments_changed", "call", "the call changes its arguments"),
        Reason(
            "object_changed",
            "call",
            "the call changes its object",
            "assign only to variables in a call",
        ),
        Reason(
            "adds_losses",
            "call",
            "the call adds losses to a layer, or reads them",
            "add no losses to layers of tf_keras, and read losses outside of calls",
        ),
        Reason(
            "library_in_module",
            "call",
            "the call of a `tf.Module` runs code of tf_keras, or of Keras with another backend",
            "nothing: calls of the layers in the module are replayed",
        ),
        Reason("settings_changed", "call", "the call changes settings of Keras"),
        Reason("scope_left_open", "call", "the call leaves a scope open"),
        Reason("call_context", "call", "the call stores an object in Keras's call context"),
        Reason(
            "container_returned",
            "call",
            "the call returns a container that its object or its caller holds",
            "return a copy",
        ),
        Reason("names_differ", "call", "two recorded calls gave different names to new objects"),
        Reason("warnings_differ", "call", "two recorded calls issued different warnings"),
        Reason("ops_differ", "call", "two recorded calls ran different ops or constants"),
        Reason("no_trial", "call", "an op has effects that copies of the variables do not isolate"),
        Reason("trial_failed", "call", "the replay fails on copies of the variables"),
        Reason(
            "trial_result",
            "call",
            "the result of the replay differs from that of the call",
        ),
        Reason(
            "trial_variable",
            "call",
            "after the replay, the value of a variable differs from that after the call",
        ),
        Reason("state_changes", "call", "the attributes of the object change again and again"),
        Reason(
            "recording_error",
            "call",
            "recording the call failed with an error of fastops",
            "please report it",
        ),
        Reason("not_python", "proof", "the class has no method `call` that is written in Python"),
        Reason(
            "python_version",
            "proof",
            "the code runs in a version of Python whose bytecode has not been reviewed",
            "use a version of Python that fastops supports",
        ),
        Reason(
            "own_globals",
            "proof",
            "the code has globals or builtins of its own",
            "define the function in a module",
        ),
        Reason("asynchronous", "proof", "the code is asynchronous", "use a plain function"),
        Reason("generator", "proof", "the code is a generator", "return a list"),
        Reason(
            "draws_unseeded",
            "proof",
            "the code draws random numbers without a generator",
            "pass the function a keras.random.SeedGenerator",
        ),
        Reason(
            "compares_containers",
            "proof",
            "the code may compare containers of tensors",
            "use tf.equal",
        ),
        Reason(
            "changes_in_place",
            "proof",
            "the code may change a list or an array in place",
            "use a + b, not a += b",
        ),
        Reason(
            "assigns_global",
            "proof",
            "the code assigns to a global",
            "return the value, or keep it in a tf.Variable",
        ),
        Reason(
            "assigns_attribute",
            "proof",
            "the code assigns to an attribute",
            "return the value, or keep it in a tf.Variable",
        ),
        Reason(
            "assigns_outer",
            "proof",
            "the code assigns to a variable of an outer function",
            "return the value, or keep it in a tf.Variable",
        ),
        Reason(
            "assigns_item",
            "proof",
            "the code assigns to an item or a slice",
            "make a new tensor or list, or assign only to items of a list or dict that the "
            "function makes itself by [] or {}",
        ),
        Reason("deletes_item", "proof", "the code deletes an item", "make a new list or dict"),
        Reason(
            "imports",
            "proof",
            "the code imports a module",
            "import it at the top of the module",
        ),
        Reason(
            "with_statement",
            "proof",
            "the code has a with statement for more than a name scope",
            "write its body without it",
        ),
        Reason(
            "handles_exceptions", "proof", "the code handles exceptions", "let exceptions propagate"
        ),
        Reason(
            "defines_class",
            "proof",
            "the code defines a class",
            "define it outside of the function",
        ),
        Reason(
            "super_arguments",
            "proof",
            "the code calls super with unusual arguments",
            "use super() without arguments",
        ),
        Reason(
            "instruction",
            "proof",
            "the code has an instruction of Python that has not been reviewed",
            "write it in a simpler way",
        ),
        Reason(
            "binds_parameter",
            "proof",
            "the code binds a new value to a parameter that holds an object",
            "use another name for the new value",
        ),
        Reason(
            "computed_name",
            "proof",
            "the code uses getattr with a name that is not constant",
            "use a dict",
        ),
        Reason(
            "attribute_in_doubt",
            "proof",
            "the code reads an attribute that may be missing",
            "read the attribute without a default",
        ),
        Reason(
            "compares_identity",
            "proof",
            "the code compares with `is`",
            "compare with ==, or with None",
        ),
        Reason(
            "attribute_missing",
            "proof",
            "the code uses an attribute that does not exist",
            "set it before the call",
        ),
        Reason(
            "attribute_made",
            "proof",
            "the code uses an attribute that its module creates when it is first read",
            "import it",
        ),
        Reason(
            "attribute_looked_up",
            "proof",
            "the code uses an attribute that a `__getattr__` or `__getattribute__` looks up",
            "use a global",
        ),
        Reason(
            "attribute_descriptor",
            "proof",
            "the code uses a descriptor",
            "use an attribute of the object",
        ),
        Reason(
            "attribute_of_value",
            "proof",
            "the code uses an attribute of a value that it has computed",
            "use a function of TensorFlow or Keras",
        ),
        Reason(
            "property_of_class",
            "proof",
            "the code uses a property of a class",
            "use an instance",
        ),
        Reason(
            "property_of_library",
            "proof",
            "the code reads a property that a library computes",
            "use another attribute",
        ),
        Reason(
            "method_of_library",
            "proof",
            "the code calls a method of a library that may do more than compute",
            "use a function of TensorFlow or Keras",
        ),
        Reason(
            "super_other_class",
            "proof",
            "the code calls super with a class that its object is not an instance of",
            "use super() without arguments",
        ),
        Reason(
            "super_no_method",
            "proof",
            "the code uses an attribute of super() that is not a method",
            "call a method",
        ),
        Reason(
            "changes_list",
            "proof",
            "the code may change a list, set or dict that it has not made",
            "append only to a list that the function makes itself by []",
        ),
        Reason(
            "takes_numbers",
            "proof",
            "the code takes numbers out of a tensor",
            "compute with functions of TensorFlow",
        ),
        Reason(
            "object_as_value",
            "proof",
            "the code uses an object itself, and not one of its attributes",
            "use its attributes, each where it is needed",
        ),
        Reason(
            "object_of_class",
            "proof",
            "the code uses an object whose class may do more than compute",
            "use numbers, tensors, variables, and lists of these",
        ),
        Reason(
            "uses_builtin",
            "proof",
            "the code uses a function or class of Python that may do more than compute",
            "do this outside of the function",
        ),
        Reason(
            "uses_library",
            "proof",
            "the code uses a function or class of a library that may do more than compute",
            "use a function of TensorFlow or Keras",
        ),
        Reason(
            "uses_changing",
            "proof",
            "the code uses a function or class whose result changes from call to call",
            "pass the result as an argument",
        ),
        Reason(
            "nested_deeply",
            "proof",
            "the code uses a container that is nested too deeply",
            "use less nesting",
        ),
        Reason(
            "keys_are_objects",
            "proof",
            "the code uses a dict whose keys are objects",
            "use strings",
        ),
        Reason("object_too_large", "object", "the object holds too many places to compare"),
        Reason(
            "holds_c_function",
            "object",
            "the object holds a function written in C, whose effects are unknown",
        ),
        Reason(
            "holds_cache",
            "object",
            "the object holds a cache of results (functools.lru_cache)",
            "the cache belongs to a function of yours",
        ),
        Reason(
            "holds_array_subclass",
            "object",
            "the object holds an instance of a subclass of np.ndarray",
        ),
        Reason(
            "holds_large_array",
            "object",
            "the object holds an array that is too large to compare in each call",
            "make it a tensor",
        ),
        Reason("holds_thread_local", "object", "the object holds a threading.local"),
        Reason(
            "holds_opaque",
            "object",
            "the object holds an object whose contents cannot be compared",
            "its class is written in C, or has slots",
        ),
        Reason(
            "holds_keys",
            "object",
            "the object holds a dict with keys that cannot be compared",
            "use strings or numbers",
        ),
        Reason(
            "reads_any_attribute",
            "code",
            "the code may read any attribute",
            "for example `globals`, `vars`, or `getattr` with a computed name",
        ),
        Reason(
            "reads_uncompared",
            "code",
            "the code reads an attribute that is not compared",
            "the attribute is bookkeeping of Keras or TensorFlow",
        ),
        Reason("read_changed", "code", "the call changes a global that its code reads"),
        Reason(
            "argument_kept",
            "code",
            "the object or a global holds an argument after the call",
            "in a replay it would still hold the argument of the recorded call",
        ),
        Reason(
            "copied_without_op",
            "code",
            "the call copies a tensor without an op",
            "`x.cpu()`, for example",
        ),
        Reason(
            "interrupted",
            "recording",
            "another thread changed TensorFlow's op callbacks during the recording",
        ),
        Reason("logs", "recording", "the call logs or warns", "a replay would be silent"),
        Reason("builds_graph", "recording", "the call builds a graph"),
        Reason("unused_seed", "recording", "the call draws a seed that no recorded op uses"),
        Reason("too_many_ops", "recording", "the call runs too many ops"),
        Reason("private_op", "recording", "an op is not one of TensorFlow's public ops"),
        Reason("op_effects", "recording", "an op has effects"),
        Reason(
            "op_seeded",
            "recording",
            "a random op has a seed: TensorFlow's own kernel must draw the next number",
        ),
        Reason(
            "op_elsewhere",
            "recording",
            "an op does not run in this process, or its inputs have not been computed yet",
        ),
        Reason(
            "op_device_scope",
            "recording",
            "an op runs in a device scope, and the process has several devices",
        ),
        Reason("op_handle", "recording", "an op reads what a resource handle refers to"),
        Reason(
            "large_constant", "recording", "the call makes a constant that is too large to keep"
        ),
        Reason(
            "sizes_from_values",
            "recording",
            "the output shape of an op depends on input values, after a variable was assigned",
        ),
        Reason(
            "copy_by_python",
            "recording",
            "an op takes a copy of a tensor that was made without an op",
        ),
        Reason(
            "read_after_effect",
            "recording",
            "Python reads a value that a random op or a variable changed in place has made",
            "the value cannot be compared before the call changes anything",
        ),
        Reason(
            "assigns_large_values",
            "recording",
            "Python reads a value after large values were assigned",
            "a replay would have to keep all of them until it has compared the value",
        ),
        Reason(
            "branch_missing",
            "recording",
            "Python decides by a random number, and has not taken one of the branches",
            "a call is replayed when all branches have been recorded",
        ),
        Reason(
            "large_value",
            "recording",
            "Python reads the value of a tensor that is too large to compare in each call",
        ),
        Reason(
            "value_on_device",
            "recording",
            "Python reads the value of a tensor on a device other than the host",
        ),
        Reason(
            "returns_large_constant",
            "recording",
            "the call returns a constant that is too large to keep",
        ),
        Reason(
            "returns_constant",
            "recording",
            "the call returns a constant, whose device cannot be reproduced",
            "the process has several devices",
        ),
        Reason(
            "returns_held_tensor",
            "recording",
            "the call returns a tensor that its object holds",
            "return `tf.identity` of it",
        ),
        Reason(
            "sets_tensor_attributes",
            "recording",
            "the call sets attributes of a tensor that cannot be reproduced",
        ),
        Reason(
            "returns_type",
            "recording",
            "the call returns an object that is neither a tensor nor a structure of tensors",
        ),
        Reason("op_inputs", "recording", "the inputs of an op do not match its definition"),
        Reason("package_missing", "install", "a package is not imported"),
        Reason(
            "name_missing",
            "install",
            "a name that the stand-in needs is missing",
            "the library has another version, or the program has deleted the name",
        ),
        Reason(
            "name_kind",
            "install",
            "a name that the stand-in needs refers to an object of an unexpected kind",
            "the library has another version, or the program has put an object there",
        ),
        Reason("name_raises", "install", "a name that the stand-in needs cannot be read"),
        Reason(
            "parameter_missing", "install", "the function lacks a parameter that the stand-in needs"
        ),
        Reason(
            "code_differs",
            "install",
            "the code that the stand-in mirrors differs",
            "the library has another version: [Versions](versions.md)",
        ),
        Reason(
            "source_missing",
            "install",
            "the source of the code that the stand-in mirrors is missing",
        ),
        Reason(
            "original_replaced",
            "install",
            "other code has replaced or wrapped the function",
            "install fastops before that code runs",
        ),
        Reason(
            "original_other", "install", "the function is not the one that the stand-in mirrors"
        ),
        Reason(
            "original_missing", "install", "the function is missing, or other code has replaced it"
        ),
        Reason("piece_unknown", "install", "the table of mirrored code does not have the function"),
        Reason("function_claimed", "install", "another stand-in replaces the same function"),
        Reason("attribute_claimed", "install", "another stand-in replaces the same attribute"),
        Reason(
            "install_error",
            "install",
            "making the stand-in has failed with an error",
            "please report it",
        ),
    )
}
"""All reasons, by their ids."""

_LINK = re.compile(r"\[([^]]*)\]\(([^)#]*)[^)]*\)")
"""A link in Markdown."""

REASONS = tuple(reason for reason in REGISTRY.values() if reason.area == "op")
"""The reasons of calls of ops. The index of a reason is its number in `reasons.pxd`."""


def text_of(name, detail=None):
    """Return the text for a reason, with the particulars, if there are any."""
    sentence = REGISTRY[name].sentence
    return sentence if detail is None else f"{sentence}: {detail}"


def advice(name, detail=None):
    """Return the text for a reason, followed by its hint."""
    return f"{text_of(name, detail)} ({REGISTRY[name].hint})"


def hint_of(text):
    """Return the hint, in plain text, of the reason with which a text begins; "" if it has none.

    Parameters
    ----------
    text : str
        The sentence of a reason, possibly followed by a colon and the particulars.
    """
    for reason in REGISTRY.values():
        if text == reason.sentence or text.startswith(f"{reason.sentence}: "):
            return _LINK.sub(r"docs/\2, \1", reason.hint)
    return ""


class RefusedError(Exception):
    """Nothing is made for later calls.

    Parameters
    ----------
    name : str
        The id of the reason.
    detail : str, optional
        The particulars: a path, a class, an op.

    Attributes
    ----------
    name : str
        The id.
    sentence : str
        The sentence of the reason.
    detail : str or None
        The particulars.
    """

    def __init__(self, name, detail=None):
        super().__init__(text_of(name, detail))
        self.name = name
        self.sentence, self.detail = REGISTRY[name].sentence, detail
