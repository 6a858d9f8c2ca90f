"""``python -m fastops bench``: runs the benchmarks of the separate package `fastops_bench`."""

import importlib.util
import sys

NEEDED = ("fastops_bench", "pytest_fastops", "pytest", "matplotlib")


def run(arguments):
    """Run the command, if all packages it needs are installed; return its exit status."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        print(
            f"python -m fastops bench needs what the extra `bench` has, and {', '.join(missing)} "
            f"{verb} not installed: pip install 'fastops[bench]'",
            file=sys.stderr,
        )
        return 2
    from fastops_bench import command

    return command.main(arguments)
