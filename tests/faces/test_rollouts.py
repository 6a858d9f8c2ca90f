"""Actors of examples/rollouts.py: results depend neither on their order nor on who runs the ops."""

import hashlib
import importlib
import os
import random
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def rollouts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    program = importlib.import_module("rollouts")
    # Here, actors are objects of this process, whose number of threads may be fixed already.
    monkeypatch.setattr(program, "begin_process", lambda stock: None)
    return program


class Remote:
    """An actor of a fake Ray: it makes its calls when a result is requested, in any order."""

    order = random.Random(0)

    def __init__(self, kind):
        self.kind = kind

    def remote(self, *args):
        made = self.kind(*args)
        call = types.SimpleNamespace(remote=lambda sent: [made, sent, None])
        return types.SimpleNamespace(play=call)

    @classmethod
    def get(cls, calls):
        for call in cls.order.sample(calls, len(calls)):
            actor, sent, _ = call
            call[2] = actor.play(sent)
        return [result for *_, result in calls]


def played(program, monkeypatch, *arguments):
    """Return the games and weights of actors that are objects of this process."""
    ray = types.SimpleNamespace(
        remote=lambda **options: Remote, get=Remote.get, put=lambda x: x, kill=lambda actor: None
    )
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "ray", ray)
        return program.train(*arguments)


def test_the_order_in_which_actors_finish_does_not_matter(rollouts, monkeypatch):
    first, second = (played(rollouts, monkeypatch, 3, 4, 1, True) for _ in range(2))
    assert first[0] == second[0]
    assert np.shape(first[0]) == (4, 3)
    assert [array.tobytes() for array in first[1]] == [array.tobytes() for array in second[1]]
    assert first[1][0].tobytes() != rollouts.initial(1)[0].tobytes(), "the weights have not changed"
    assert first[2].tolist() == np.sum(first[0][1:], axis=0).tolist()
    assert played(rollouts, monkeypatch, 3, 4, 2, True)[0] != first[0]


def of_cluster(folder):
    """Return the processes whose environment names this folder."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes()
            ended = "\nState:\tZ" in (process / "status").read_text()
        except OSError:
            continue
        if f"RAY_TMPDIR={folder}".encode() in variables and not ended:
            processes.append(process.name)
    return processes


def results(*arguments):
    """Run the program with its own cluster; return its output without the times.

    Ray writes its files into a folder with a short name, since the length of socket names is
    limited.
    """
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        done = subprocess.run(
            [sys.executable, "examples/rollouts.py", *arguments],
            cwd=ROOT,
            env={**os.environ, "HOME": folder, "RAY_TMPDIR": folder, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        for _ in range(6000):  # the processes end one after another
            if not (left := of_cluster(folder)):
                break
            time.sleep(0.1)
        assert not left, "processes of the cluster are left"
    *lines, last = done.stdout.splitlines()
    assert last.startswith("seconds: ")
    assert len(last.partition("each actor: ")[2].split()) == 2
    return lines


@pytest.mark.slow
def test_results_are_the_same_on_a_local_cluster(rollouts, monkeypatch):
    """Processes of a cluster with fastops give the same as TensorFlow here, without Ray."""
    pytest.importorskip("ray", reason="see the extra 'rollouts'")
    lengths, weights, *_ = played(rollouts, monkeypatch, 2, 6, 0, True)
    digest = hashlib.sha256(b"".join(map(np.ndarray.tobytes, weights))).hexdigest()
    returns = " ".join(",".join(map(str, episodes)) for episodes in lengths)
    assert results("--rounds=6") == [f"returns: {returns}", f"weights: {digest}"]
