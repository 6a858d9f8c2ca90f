"""The time and resident memory that `import fastops` adds to `import tensorflow`."""

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


def test_import(record, times):
    def run():
        output = subprocess.check_output([sys.executable, "-c", SCRIPT], text=True)
        seconds, growth = output.split()
        return float(seconds), int(growth)

    run()  # the first run may write bytecode
    seconds, growth = zip(*(run() for _ in range(times(7, quick=2))), strict=True)
    record("import", "import fastops", seconds=seconds, growth=growth)
