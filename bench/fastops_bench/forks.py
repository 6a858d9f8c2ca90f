"""Run programs once, as forks of an interpreter that has imported TensorFlow and Keras.

Most of the programs that are measured in new processes take less time than their imports. A run
that only tries them (``--once``) starts two interpreters, a plain one and one by ``python -m
fastops``. Each of them runs ``python -m fastops_bench.forks``, which forks for each program, before
TensorFlow has a context or a thread. So a program still begins in the state after the imports.
"""

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
import traceback
from typing import NamedTuple


class Result(NamedTuple):
    """The result of a program.

    Attributes
    ----------
    program : list of str
    status : int
        The exit status, a negative number if a signal ended it.
    taken : int
        The time in nanoseconds.
    output, errors : str
        The text that it wrote to its streams.
    """

    program: list[str]
    status: int
    taken: int
    output: str
    errors: str

    def check(self):
        """Raise a `RuntimeError` with the end of the output, unless the program has succeeded."""
        if self.status:
            text = self.output[-2000:] + self.errors[-2000:]
            raise RuntimeError(f"{self.program} ended with status {self.status}:\n{text}")


class Forks:
    """An interpreter that runs programs one after another, each in a fork.

    Parameters
    ----------
    command : list of str
        The interpreter and its options, without the program.
    environment : dict of str to str
        All environment variables.
    """

    def __init__(self, command, environment):
        self._process = subprocess.Popen(
            [*command, "-m", "fastops_bench.forks"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, program, folder=None):
        """Start a program, given as the arguments after ``python``; `result` waits for its end."""
        request = {"program": program, "folder": folder and str(folder)}
        print(json.dumps(request), file=self._process.stdin, flush=True)

    def result(self):
        """Wait for the program to end; return its `Result`."""
        return Result(**json.loads(self._process.stdout.readline()))

    def end(self):
        """End the interpreter; a program that is still running ends first."""
        self._process.communicate()


def run(program):
    """Run a program, given as arguments of ``python``: a file, or ``-m`` and a module."""
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")


def status_of(program):
    """Run a program; return its exit status."""
    try:
        run(program)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def fork(program, folder):
    """Run a program in a fork; return its status, its time, and the text of both streams."""
    begin = time.perf_counter_ns()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            with open(os.devnull) as nothing:
                os.dup2(nothing.fileno(), 0)
            if folder is not None:
                os.chdir(folder)
            status = status_of(program)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, ended = os.waitpid(child, 0)
        for file in (output, errors):
            file.seek(0)
        return {
            "program": program,
            "status": os.waitstatus_to_exitcode(ended),
            "taken": time.perf_counter_ns() - begin,
            "output": output.read(),
            "errors": errors.read(),
        }


def main():
    """Run a program for each line of the standard input; write a line about each."""
    import keras  # noqa: F401 - programs find it imported
    import tensorflow  # noqa: F401
    from tensorflow.python.eager import context

    made = context._context
    assert made is None or made._context_handle is None, "forks with a context hang"
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(fork(request["program"], request["folder"])), flush=True)


if __name__ == "__main__":
    main()
