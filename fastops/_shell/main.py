"""Run a program with `fastops.install` active, or say what is active here."""

import argparse
import atexit
import os
import sys

from fastops._core.garbage import importing
from fastops._core.imports import when_imported
from fastops._shell import launch, programs
from fastops._shell.verification import parse
from fastops._version import __version__


def config(console):
    """List every ``FASTOPS_*`` environment variable."""
    from fastops._shell import doctor

    return doctor.config(console)


def doctor(console):
    """Print versions, build and devices, and whether the direct path is live."""
    from fastops._shell import doctor

    return doctor.doctor(console)


def inspect(console, **arguments):
    """List the signatures and ops of a saved model, and whether plans run them."""
    from fastops._shell import models

    return models.inspect(console, **arguments)


def run(console, **arguments):
    """Run a saved model on .npy files, and print how long that takes."""
    from fastops._shell import models

    return models.run(console, **arguments)


def bench(arguments):
    """Measure fastops beside TensorFlow and its peers; bench --help says how."""
    from fastops._shell import bench

    return bench.run(arguments)


COMMANDS = {"bench": bench, "config": config, "doctor": doctor, "inspect": inspect, "run": run}
MODEL_COMMANDS = frozenset({"inspect", "run"})

_PROGRAMS = """\
programs:
  script.py        a file, a directory or zip file with a __main__.py, or - for the standard input
  -m module        a module
  -c code          code

commands:
"""


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m fastops",
        usage="%(prog)s [options] program [arguments ...]\n       %(prog)s command [arguments ...]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_PROGRAMS + "".join(f"  {n:<17}{c.__doc__}\n" for n, c in COMMANDS.items()),
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="at the end, report to stderr which paths the program's calls took, and their time",
    )
    for name, what in (("--html", "a page with a picture"), ("--trace", "a trace for Perfetto")):
        # Resolve the path now: the program may change the current directory.
        text = f"at the end, write the report as {what} (attached by =)"
        parser.add_argument(name, metavar="FILE", type=os.path.abspath, help=text)
    parser.add_argument(
        "--frames",
        action="store_true",
        help="with one of these: the Python of the main thread, too, which takes time",
    )
    parser.add_argument(
        "--exclude",
        type=lambda text: text.split(","),
        metavar="NAMES",
        help="what install() leaves alone, as in --exclude=models,traced,tf.matmul",
    )
    for name in ("--functions", "--models"):  # options of earlier versions: now always on
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--strict", action="store_true", help="raise FallbackError where a call cannot run direct"
    )
    parser.add_argument(
        "--verify",
        nargs="?",
        const="raise",
        type=_verification,
        metavar="MODE",
        help="run calls in TensorFlow's code, too, and compare: raise (default) or warn where they "
        "differ, warn:10 for one call in ten (attached by =); at the end, say what was compared",
    )
    parser.add_argument("--version", action="version", version=f"fastops {__version__}")
    return parser


def _command_arguments(name, arguments):
    """Return the arguments of a command that takes a model."""
    parser = argparse.ArgumentParser(
        prog=f"python -m fastops {name}", description=COMMANDS[name].__doc__
    )
    parser.add_argument("model", help="a SavedModel, a frozen graph (.pb, .pbtxt) or a .meta file")
    parser.add_argument("--tags", type=lambda text: text.split(","), help="of a MetaGraph: a,b")
    if name == "run":
        pair = {"action": "append", "default": [], "type": _pair}
        parser.add_argument("--input", **pair, dest="inputs", metavar="NAME=FILE", help=".npy")
        parser.add_argument("--output", **pair, dest="outputs", metavar="NAME=FILE", help=".npy")
        parser.add_argument("--signature", default="serving_default", help="default: %(default)s")
        parser.add_argument("--repeat", type=_count, default=1, help="calls to time", metavar="N")
    return vars(parser.parse_args(arguments))


def _pair(text):
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=FILE")
    return name, path


def _verification(text):
    try:
        return parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not raise, warn, raise:N or warn:N"
        ) from None


def _count(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _split(arguments):
    """Split the arguments into fastops's and the program's. The program is the first non-option."""
    for i, argument in enumerate(arguments):
        if argument[:2] in ("-m", "-c"):
            attached = [argument[2:]] if argument[2:] else []
            return arguments[:i], [argument[:2], *attached, *arguments[i + 1 :]]
        if argument == "-" or not argument.startswith("-"):
            return arguments[:i], arguments[i:]
    return arguments, []


def _accelerate(chosen, profiles):
    """Apply the options. The program has just imported TensorFlow."""
    from fastops._core import options
    from fastops._install.placement import install
    from fastops._reports import explain

    mode, every = chosen.verify or (None, None)
    install(exclude=chosen.exclude, verify=mode, verify_every=every)
    if chosen.strict:
        options.set_everywhere(on_fallback="raise")
    if chosen.profile or chosen.html or chosen.trace:
        profiles.append(explain.start(frames=chosen.frames))


def _report(profiles, chosen, process):
    if os.getpid() == process:  # not in a forked child
        _tell_of_verification()
        for profile in profiles:
            profile._stop()
            if chosen.profile:
                print(profile, file=sys.stderr)
            _write(profile.to_html, chosen.html)
            _write(profile.to_chrome_trace, chosen.trace)


def _tell_of_verification():
    """Print how many calls were verified, if verification was on."""
    results = sys.modules.get("fastops._install.verify.results")
    if results is not None and results.RESULTS.mode is not None:
        print(results.verified(), file=sys.stderr)


def _write(method, path):
    """Write a report to a file, if there is a path. An error does not fail the program."""
    try:
        if path:
            method(path)
    except OSError as error:
        print(f"fastops: cannot write {path}: {error}", file=sys.stderr)


def main(arguments=None):
    """Run a command or a program; return the exit status."""
    options, program = _split(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    chosen = parser.parse_args(options)
    if not program:
        parser.error("a program or a command is missing")
    if program[0] in COMMANDS:
        name, *rest = program
        takes = name in MODEL_COMMANDS or name == "bench"
        if options or (rest and not takes):
            parser.error(f"{name} takes no {'options before it' if options else 'arguments'}")
        if name == "bench":  # it measures in other processes: no TensorFlow here
            return bench(rest)
        chosen = _command_arguments(name, rest) if name in MODEL_COMMANDS else {}
        launch.load()
        from rich.console import Console

        return COMMANDS[name](Console(), **chosen)
    if program[0] in ("-m", "-c") and len(program) == 1:
        parser.error(f"argument expected for the {program[0]} option")
    if chosen.frames and not (chosen.html or chosen.trace):
        parser.error("--frames needs --html=FILE or --trace=FILE")
    profiles = []
    atexit.register(_report, profiles, chosen, os.getpid())  # registered first: runs last
    launch.load()
    when_imported(lambda: _accelerate(chosen, profiles), importing)
    programs.run(program)
    return 0
