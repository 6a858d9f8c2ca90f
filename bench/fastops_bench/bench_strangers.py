"""Programs as users write them (`fastops_bench.programs`), and similar programs in PyTorch.

Each program runs unchanged, alone and by `python -m fastops`, in new processes that take turns. The
printed values, and the digest of all results, must be the same. PyTorch's programs have the same
sizes and numbers of steps; their values are not compared.
"""

import pytest

from fastops_bench import programs, whole
from fastops_bench.common import COMMANDS, installed, interpreter

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not installed("keras"), reason="Keras is not installed"),
]

RUNS = 2


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """Return a folder from which PyTorch's environment imports the programs."""
    return str(whole.link_benchmarks(tmp_path_factory.mktemp("linked")))


@pytest.mark.parametrize("label", programs.PROGRAMS)
def test_strangers(record, effort, quick, times, forked, linked, label):
    module, full, short = programs.PROGRAMS[label]
    options = short if quick else full
    program = ["-m", f"{programs.__name__}.{module}", *options]
    torch = interpreter("torch")

    def run_all():
        if effort == "once":
            outputs = {arm: result.output for arm, result in forked(program).items()}
        else:
            outputs = {arm: whole.run([*start, *program]) for arm, start in COMMANDS.items()}
        if torch:
            similar = [torch, "-m", f"{programs.__name__}.pytorch.{module}", *options]
            outputs["torch"] = whole.run(similar, PYTHONPATH=linked)
        return outputs

    versions = {"torch": whole.version_of("torch", torch)} if torch else {}
    rounds = times(RUNS, quick=1)
    whole.compare(record, "strangers", label, rounds, run_all, versions=versions)
