"""What is measured of fastops, beside TensorFlow and its peers: ``python -m fastops bench``.

Each ``bench_*.py`` is a suite: a file of pytest's, whose tests race arms against each other
(`pytest_fastops.race`) and leave a record. `worker` runs suites in a process of its own, `command`
is the command line, `runs` what is saved; `report`, `plots` and `page` show a run, `compare` two.
"""
