"""Generate `fastops.gen`, the tables of `fastops._core`, and the stubs of `ops` and `raw_ops`.

Examples
--------
Run ``python tools/gen.py write`` after a change of tools/policy.toml, and ``snapshot``, then
``write``, for another TensorFlow. ``--check`` tells whether the checked-in files are up to date.
"""

import argparse
import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools import load, render  # noqa: E402

PACKAGE = ROOT / "fastops"


def write(api, package=PACKAGE):
    """Write the files that differ; delete those that are no longer generated.

    Returns
    -------
    list of str
        The paths that were written or deleted, below the package.
    """
    changed = stale(api, package)
    for path, (_, text) in changed.items():
        target = package / path
        if text is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    return list(changed)


def stale(api, package=PACKAGE):
    """Return the changes that `write` would make.

    Returns
    -------
    dict
        By path below the package, the present text and the new text; `None` for a file that does
        not exist, or should not.
    """
    wanted = render.files(api)
    present = {
        path.relative_to(package).as_posix(): path.read_text()
        for path in sorted((*package.glob("gen/*.py*"), *package.glob("_core/tables/*.py")))
        if path.suffix in (".py", ".pyi")
    }
    present |= {path: (package / path).read_text() for path in wanted if (package / path).exists()}
    return {
        path: (present.get(path), wanted.get(path))
        for path in sorted(present.keys() | wanted.keys())
        if present.get(path) != wanted.get(path)
    }


def report(changed):
    """Return a unified diff of stale files, the likely cause and the remedy."""
    lines = []
    for path, (old, new) in changed.items():
        lines += difflib.unified_diff(
            (old or "").splitlines(keepends=True),
            (new or "").splitlines(keepends=True),
            f"fastops/{path} (checked in)" if old is not None else "/dev/null",
            f"fastops/{path} (generated)" if new is not None else "/dev/null",
        )
    lines.append(
        f"\n{len(changed)} generated files are stale. Likely tools/policy.toml, tools/ops.pbtxt or "
        "the generator changed, or a generated file was edited.\n"
        "Mend it: python tools/gen.py write\n"
    )
    return "".join(lines)


def take(found, facts, ops=load.OPS, facts_file=load.FACTS):
    """Save the OpDefs of the running TensorFlow in full, or as a difference from the snapshot.

    They are a difference for earlier versions, and for candidates of a later release.

    Parameters
    ----------
    found : str
        The result of `tools.snapshot.op_defs`.
    facts : callable
        Returns the text of facts.toml.
    """
    before = ops.read_text()
    version, kept = (load.minor(text) for text in (found, before))
    if version < kept or is_candidate(found):
        name = ".".join(map(str, version))
        ops.with_name(f"{ops.stem}-{name}{ops.suffix}").write_text(load.difference(before, found))
        return 0
    for path in load.differing(ops):  # the others are stored as differences from the snapshot
        difference = path.read_text()
        if load.minor(difference) == version:
            path.unlink()  # of a candidate of this version
        else:
            path.write_text(load.difference(found, load.written(before, difference)))
    if version > kept:
        name = ".".join(map(str, kept))
        ops.with_name(f"{ops.stem}-{name}{ops.suffix}").write_text(load.difference(found, before))
    ops.write_text(found)
    facts_file.write_text(facts())
    return 0


def is_candidate(found):
    """Tell whether OpDefs are those of a candidate of a release, such as 2.22.0-rc0."""
    return "rc" in found.splitlines()[0]


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="tools/gen.py",
        description="Generate fastops/gen, fastops/_core/tables and the stubs of ops and raw_ops.",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=["write", "snapshot"],
        default="write",
        help="write: update the generated files (default); snapshot: update tools/ops.pbtxt and "
        "tools/facts.toml from the installed TensorFlow; for an earlier version, or a candidate of "
        "a release, write its differences to tools/ops-VERSION.pbtxt",
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail with a diff if a file is stale"
    )
    options = parser.parse_args(argv)
    if options.action == "snapshot":
        from tools import snapshot

        return take(snapshot.op_defs(), snapshot.facts)
    try:
        api = load.load()
    except load.LoadError as error:
        print(f"tools/gen.py: {error}", file=sys.stderr)
        return 2
    if options.check:
        changed = stale(api)
        if changed:
            print(report(changed), end="")
        return 1 if changed else 0
    for path in write(api):
        print(f"fastops/{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
