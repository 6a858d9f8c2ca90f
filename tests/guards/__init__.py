"""A fuzzer of guards, which changes what recorded calls depend on, one thing at a time."""
