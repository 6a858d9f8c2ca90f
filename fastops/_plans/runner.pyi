from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from fastops._plans.plan import Plan

class Runner:
    plan: Plan | None
    sentence: str | None
    detail: str | None
    settled: bool
    options: list[Any]
    num_nodes: float
    call_ns: int
    @property
    def reason(self) -> str | None: ...
    def wait_for_seed(self) -> None: ...
    def allow_bare(self) -> None: ...
    def run_bare(self, inputs: list[tf.Tensor]) -> Any: ...
    def is_ready(self) -> bool: ...
    def run(self, inputs: Iterable[tf.Tensor]) -> list[tf.Tensor]: ...

def observe(change: int) -> None: ...
