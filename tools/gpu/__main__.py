"""The command ``python -m tools.gpu``, with ``pack``, ``assemble`` and ``prove``."""

import argparse
import sys
from pathlib import Path

from . import LARGEST_PIECE, PYTHON, TENSORFLOW, WORK


def parser():
    found = argparse.ArgumentParser(
        prog="python -m tools.gpu",
        description="Carry fastops to a machine with an NVIDIA GPU, and prove it there.",
        epilog="tools/gpu/README.md has the steps, one command for each piece.",
    )
    commands = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_pack(commands)
    _add_assemble(commands)
    _add_prove(commands)
    return found


def _add_pack(commands):
    pack = commands.add_parser(
        "pack",
        help="make the pieces, on this machine",
        description="Make an environment with TensorFlow for GPUs and NVIDIA's libraries for "
        "CUDA 12, compile fastops for it, and pack both into pieces, those for a first test "
        "first. No GPU is needed. Needs a network, some 20 GB of disk, and a compiler; a run that "
        "was stopped goes on, and what has not changed is not packed again.",
    )
    add = pack.add_argument
    add("--out", type=Path, default=WORK / "pieces", metavar="DIR", help="default: build/gpu/...")
    add("--python", default=PYTHON, metavar="X.Y", help="that machine's (default: %(default)s)")
    add("--tensorflow", default=TENSORFLOW, metavar="X.Y.Z", help="default: %(default)s")
    add(
        "--capability",
        metavar="X.Y",
        help="the GPU's compute capability, such as 9.0 for an H100: of other GPUs' code in the "
        "libraries zeros are packed (default: of none)",
    )
    add("--revision", default="HEAD", help="the commit that is packed (default: %(default)s)")
    add("--preset", type=int, default=1, choices=range(10), help="of xz (default: %(default)s)")
    add(
        "--largest",
        type=int,
        default=LARGEST_PIECE,
        metavar="BYTES",
        help="of a piece (default: %(default)s)",
    )


def _add_assemble(commands):
    assemble = commands.add_parser(
        "assemble",
        help="put pieces together, on the machine with the GPU",
        description="Check pieces, keep them, and unpack each tier that is complete. It needs "
        "Python alone, of the version that was packed for; says which pieces are missing; and "
        "does nothing twice. A piece that is damaged is refused, with exit status 1.",
    )
    add = assemble.add_argument
    add("pieces", nargs="*", type=Path, metavar="PIECES", help="pieces, folders, manifest.json")
    add("--to", type=Path, required=True, metavar="DIR", help="the folder for everything")


def _add_prove(commands):
    prove = commands.add_parser(
        "prove",
        help="run the tests, on the machine with the GPU",
        description="Run the steps of the proof, each in a process of its own, and write "
        "report.json and report.txt after each. Run it by the bin/python of the assembled folder. "
        "Exit status 1: something does not hold. 2: there is no GPU.",
    )
    add = prove.add_argument
    add("--step", action="append", metavar="NAME", help="run only this; may be repeated")
    add("--list", action="store_true", help="run nothing: list the steps and what they test")
    add("--device", help="such as GPU:1, or CPU:0 to try the steps (default: GPU:0)")
    add("--out", type=Path, metavar="DIR", help="of the report (default: proof in that folder)")
    add("--resume", action="store_true", help="skip passed steps, continue others")
    add("--limit", type=float, metavar="SECONDS", help="the time limit of all steps together")
    add("--step-limit", type=float, metavar="SECONDS", help="the time limit of each step")
    add("--quick", action="store_true", help="run only a small part of each step")
    add("--ops", nargs="+", metavar="OP", help="parity: only these ops")
    add(
        "--share",
        type=_share,
        default=(1, 1),
        metavar="I/N",
        help="parity: only every Nth op, from the Ith; N commands at once take all ops, each with "
        "an --out of its own",
    )
    add(
        "--direct-on",
        choices=("plugins", "all"),
        default="all",
        help="which calls may be direct: FASTOPS_DEVICES of the steps. With `plugins` those on a "
        "GPU are what they are for everybody, TensorFlow's runtime's (default: %(default)s)",
    )


def _share(text):
    part, _, count = text.partition("/")
    if not (part.isdigit() and count.isdigit() and 1 <= int(part) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 1/4")
    return int(part), int(count)


def main(arguments=None):
    """Run a command; return its exit status."""
    options = parser().parse_args(arguments)
    return {"pack": pack, "assemble": assemble, "prove": prove}[options.command](options)


def pack(options):
    # `assemble` must not import these: they need the rest of the checkout.
    from tools.wheels.__main__ import Progress

    from . import packing

    say = Progress()
    made = packing.Packing(
        options.python,
        options.tensorflow,
        options.out,
        options.capability,
        options.revision,
        options.preset,
        options.largest,
        say,
    ).run()
    print(*packing.summary(made), sep="\n")
    return 0


def assemble(options):
    from .assembling import Assembly
    from .pieces import RefusedError

    assembly = Assembly(options.to)
    try:
        assembly.add(options.pieces)
    except RefusedError as refused:
        print(f"refused: {refused}", file=sys.stderr)
        return 1
    print(*assembly.summary(), sep="\n")
    return 0


def prove(options):
    from .proving import prove

    return prove(options)


if __name__ == "__main__":
    sys.exit(main())
