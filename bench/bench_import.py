"""What `import fastops` adds to `import tensorflow`: time and resident memory."""

import subprocess
import sys

SCRIPT = """
import resource, time
from pathlib import Path
import tensorflow

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

memory, start = resident(), time.perf_counter()
import fastops
print(time.perf_counter() - start, resident() - memory)
"""


def test_import(benchmark, quick):
    samples = []

    def run():
        output = subprocess.check_output([sys.executable, "-c", SCRIPT], text=True)
        seconds, growth = output.split()
        samples.append((float(seconds), int(growth)))

    run()  # the first one may write bytecode
    samples.clear()
    benchmark.group = "import"
    benchmark.pedantic(run, rounds=1 if quick else 7)
    seconds, growth = zip(*samples, strict=True)
    benchmark.extra_info.update(label="import fastops", seconds=seconds, growth=growth)
