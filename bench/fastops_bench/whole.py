"""Run whole programs by several commands, in turn, and store the times that they print."""

import os
import re
import subprocess
from pathlib import Path

import fastops_bench

TOLD = re.compile(r"([\d.]+) us a \w+, ([\d.]+) us when steady")


def run(command, folder=None, **variables):
    """Run a program, in a folder, with additional environment variables; return its output."""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"} | variables
    return subprocess.check_output(command, cwd=folder, env=environment, text=True)


def read(output):
    """Return the two times that a program has printed, in microseconds, and its results."""
    *computed, told = output.splitlines()
    return [float(time) for time in TOLD.search(told).groups()], computed


def compare(record, group, label, rounds, run_all, **about):
    """Run a program by all arms, and store its times: over the whole run, and when steady.

    Parameters
    ----------
    record : callable
        The fixture that stores records. The steady times have a group of their own.
    group, label : str
    rounds : int
    run_all : callable
        Runs the program by each arm; returns the outputs by arm. The arms ``"stock"`` and
        ``"installed"`` must compute the same.
    about
        Other entries of the records.
    """
    wholes, steadies = {}, {}
    for _ in range(rounds):
        computed = {}
        for arm, output in run_all().items():
            (whole, steady), computed[arm] = read(output)
            wholes.setdefault(arm, []).append(whole * 1e3)
            steadies.setdefault(arm, []).append(steady * 1e3)
        assert computed["installed"] == computed["stock"]
    record(group, label, samples=wholes, **about)
    record(f"{group}, steady", label, samples=steadies, **about)


def version_of(library, python):
    """Return the version of a library in the environment of an interpreter."""
    code = f"import importlib.metadata as m; print(m.version({library!r}))"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def link_benchmarks(folder):
    """Link this package into a folder, from which another environment can import it alone."""
    source = Path(fastops_bench.__file__).resolve().parent
    (folder / source.name).symlink_to(source)
    return folder
