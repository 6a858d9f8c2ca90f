"""Benchmarks of fastops, TensorFlow and other libraries: ``python -m fastops bench``.

Each ``bench_*.py`` is a suite: a pytest file whose tests time arms against each other
(`pytest_fastops.race`) and store a record. `worker` runs suites in its own process, `command` is
the command line, and `runs` saves and reads runs. `report`, `plots` and `page` show a run,
`compare` shows two.
"""
