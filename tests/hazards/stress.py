"""How much the stress tests do.

The environment's ``STRESS`` is a fraction of the full figures: eight threads with a million calls
each, ten million calls and a million attribute values while memory is watched. ``STRESS=1`` takes
about half an hour; without it a hundredth of them runs.
"""

import os
import threading
import traceback

STRESS = float(os.environ.get("STRESS", "0.01"))


def times(full):
    """Return how often to do what the full figures do that often."""
    return max(1, round(full * STRESS))


def seconds(full):
    """Return how long something may take that takes that long with the full figures."""
    return 60 + full * STRESS


def run_threads(threads, work, meddle, pause):
    """Run `work` in that many threads, each with its number, while another one meddles.

    Returns
    -------
    list
        What `work` has returned, in no order; an exception of any thread fails the test.
    """
    made, failures, stop = [], [], threading.Event()

    def attempt(what, *args):
        try:
            what(*args)
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
