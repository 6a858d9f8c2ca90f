"""Whether memory stays flat over ten million calls."""

import resource
from itertools import repeat
from pathlib import Path

import tensorflow as tf

import fastops


def resident():
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory(benchmark, quick):
    add, x = fastops.ops.add_v2, tf.constant(1.5)
    calls = 10_000 if quick else 10_000_000

    def run(calls):
        for _ in repeat(None, calls):
            add(x=x, y=x)

    run(calls // 10)
    before = resident()
    benchmark.group = "memory"
    benchmark.pedantic(run, args=[calls], rounds=1)
    benchmark.extra_info.update(label=f"{calls:,} calls", growth=resident() - before)
