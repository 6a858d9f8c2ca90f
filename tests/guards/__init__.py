"""A fuzzer of guards: what recorded calls depend on, changed one thing at a time."""
