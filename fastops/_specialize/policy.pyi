from collections.abc import Callable
from typing import final

SHARE: float
MAX_FUNCTION_SIGNATURES: int
MAX_OBJECT_SIGNATURES: int
MAX_OBJECT_STATES: int
MAX_TEMPLATES: int
MAX_VARIANTS: int
MAX_SESSION_RUNS: int
MAX_CLASSES: int
MAX_SHARED_GUARDS: int
MAX_VARIABLE_KINDS: int
MAX_BATCH_KINDS: int
MAX_ORDERS_BYTES: int
MAX_LAYER_CLASSES: int
MAX_DECORATED: int
MAX_OPTIONAL_SPECS: int
MAX_EQUATIONS: int
MAX_STATIC_STEPS: int
MAX_OP_SETS: int
MAX_BACKEND_SETTINGS: int
MAX_CALL_OPTIONS: int
MAX_BODIES: int
MAX_BODY_FAILURES: int
MAX_BODY_TRACES: int
MAX_CLOSURES: int
MAX_WALKS: int
MAX_RECORDED_OPS: int
MAX_CODES: int
MAX_LIBRARY_CODES: int
MAX_MODULES: int
MAX_FUNCTION_OPS: int
MAX_OBJECT_OPS: int
MAX_UNSHARED_OPS: int
MAX_VALUE_BYTES: int
MAX_CONSTANT_BYTES: int
MAX_WALK_RECORDS: int
MAX_WAITING_BYTES: int
MAX_WALK_BYTES: int
MAX_OP_TENSORS: int
MAX_GUARDED_PLACES: int
MAX_SHARED_PARTS: int
MAX_CALL_DEPTH: int
MAX_PLAIN_DEPTH: int
MAX_READ_DEPTH: int
MAX_HELD_DEPTH: int
MAX_NESTING: int
MAX_COUNTED_TRACES: int
MAX_BATCH_BYTES: int
MAX_BLOCK_BYTES: int
MAX_ELEMENT_ROWS: int
MAX_ELEMENT_BYTES: int
MAX_COPIED_ROWS: int
MAX_COPIED_BYTES: int
MAX_MAPPED_NS: int
MAX_MAPPED_ROW_NS: int
MAX_HELD_BYTES: int
MIN_ALIKE_VARIABLES: int
MAX_BRANCH_REPEATS: int
MAX_FUNCTION_FAILURES: int
MAX_OBJECT_FAILURES: int
MAX_FUNCTION_CASE_FAILURES: int
MAX_OBJECT_CASE_FAILURES: int
MAX_REFUSED_OBJECTS: int
MAX_STATE_CHANGES: int
MAX_GUARD_MISSES: int
MAX_KERNEL_SEARCHES: int
MAX_DOUBLINGS: int
MAX_MAPPED_TRIALS: int
MAX_WAIT: int
MAX_PROFILED_TIMES: int
MAX_PROFILED_FRAMES: int
MAX_DIFFERENCES: int
MAX_VERIFIED_GRADIENTS: int
MAX_COMPARED_DEPTH: int
MAX_SHOWN_ARGUMENTS: int
MAX_SHOWN_ITEMS: int
MAX_SHOWN_OPS: int
MAX_SHOWN_TEXT: int
LONG_RUN_NS: int
TIMED_PLAN_NS: int
MIN_TIMED_CALLS: int

@final
class Estimate:
    name: str
    start: float
    per_unit: float
    def __init__(self, name: str, start: float) -> None: ...
    def expected(self, size: float) -> int: ...
    def measured(self, size: float, ns: int) -> None: ...

@final
class Account:
    calls: int
    shortest_ns: int
    drops: int
    def add(self, ns: int) -> None: ...
    def due(self, cost_ns: int) -> bool: ...
    def dropped(self) -> None: ...

@final
class Budget:
    failures: int
    def __init__(self, most: int) -> None: ...

def clock() -> int: ...
def share() -> float: ...
def set_share(value: float) -> float: ...
def set_clock(value: Callable[[], int] | None) -> None: ...
def estimates() -> dict[str, Estimate]: ...
