"""A copy of a commit, with extensions compiled for a TensorFlow with GPU support."""

import io
import os
import subprocess
import tarfile

from tools.wheels.environments import run

from . import ROOT


def commit(name="HEAD"):
    """Return the full name of a commit."""
    return _git("rev-parse", name).decode().strip()


def bring(target, name="HEAD"):
    """Update a folder to the files of a commit; compiled files stay.

    Parameters
    ----------
    target : Path
        The folder.
    name : str
        The name of the commit. Uncommitted changes are not copied.

    Returns
    -------
    set of str
        The names of the files.
    """
    target.mkdir(parents=True, exist_ok=True)
    listing = target / ".copied"
    before = set(listing.read_text().splitlines()) if listing.exists() else set()
    names = set()
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", name))) as archive:
        for member in archive:
            if not member.isfile():
                continue
            names.add(member.name)
            content, path = archive.extractfile(member).read(), target / member.name
            if not path.exists() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            path.chmod(0o755 if member.mode & 0o100 else 0o644)
    for gone in before - names:
        (target / gone).unlink(missing_ok=True)
    listing.write_text("\n".join(sorted(names)))
    return names


def build(target, interpreter):
    """Compile the extensions of a tree, in place, for the TensorFlow that an interpreter finds."""
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | {
        "FASTOPS_BUILD": "wheel",  # the extensions must run on other systems than this one
        "SOURCE_DATE_EPOCH": "1580601600",
        "PYTHONHASHSEED": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    command = [interpreter, "setup.py", "--quiet", "build_ext", "--inplace"]
    run(command, show=True, cwd=target, env=variables)


def built(target):
    """Return the names of the built files next to their sources."""
    files = [*(target / "fastops").rglob("*.so"), target / "fastops" / "_build_info.py"]
    return {str(path.relative_to(target)) for path in files if ".incomplete" not in path.name}


def describe(target, interpreter, place):
    """Write the package's metadata into a folder, so that pytest finds the plugin."""
    place.mkdir(parents=True, exist_ok=True)
    run([interpreter, "setup.py", "--quiet", "dist_info", "--output-dir", place], cwd=target)


def _git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout
