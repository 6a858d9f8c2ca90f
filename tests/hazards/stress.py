"""The amount of work in stress tests.

The environment variable ``STRESS`` is a fraction of the full amount: eight threads with a million
calls each, and ten million calls and a million attribute values in tests of memory. ``STRESS=1``
takes about half an hour. Without the variable, a hundredth of the amount runs.
"""

import os
import threading
import traceback

STRESS = float(os.environ.get("STRESS", "0.01"))


def times(full):
    """Return how often to do something that is done `full` times in the full amount."""
    return max(1, round(full * STRESS))


def seconds(full):
    """Return the time limit of something that takes this long in the full amount."""
    return 60 + full * STRESS


def run_threads(threads, work, meddle, pause):
    """Run `work` in several threads, each with its number, while another thread disturbs them.

    Returns
    -------
    list
        The results of `work`, in any order. An exception in any thread fails the test.
    """
    made, failures, stop = [], [], threading.Event()

    def attempt(call, *args):
        try:
            call(*args)
        except BaseException:
            failures.append(traceback.format_exc())

    def keep_meddling():
        while not stop.wait(pause):
            meddle()

    def make(number):
        made.append(work(number))

    workers = [threading.Thread(target=attempt, args=(make, number)) for number in range(threads)]
    meddler = threading.Thread(target=attempt, args=(keep_meddling,))
    for thread in (*workers, meddler):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    meddler.join()
    assert not failures, failures[0]
    return made
