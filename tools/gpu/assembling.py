"""Put pieces together on the machine on which fastops will run, with only Python.

The folder then has ``bin/python``, its packages, and ``tree``, which is fastops with its tests.
``assembled`` has the manifest, a file for each complete tier, and the pieces of incomplete tiers.
"""

import hashlib
import json
import shutil
import sys
import venv
from pathlib import Path

from . import pieces
from .pieces import MANIFEST, SUFFIX, RefusedError

STAND_IN = "stand-in.so"
"""An empty library, used in place of libraries that are opened but not called at first."""


class Assembly:
    """A folder into which pieces are unpacked.

    Parameters
    ----------
    target : path-like
        The folder; it is made.
    say : callable
        Called with a line of text after each step.
    """

    def __init__(self, target, say=print):
        self.target = Path(target).absolute()
        self.notes = self.target / "assembled"
        self._say = say

    def add(self, given):
        """Add pieces, and unpack each tier that is then complete.

        Parameters
        ----------
        given : list of path-like
            Pieces, folders of pieces, and the manifest, which the first call needs.

        Raises
        ------
        RefusedError
            If a piece does not match the manifest. Valid pieces before it are kept.
        """
        paths = [path for one in given for path in _listed(Path(one))]
        self._take_manifest([path for path in paths if path.name == MANIFEST])
        self._make_environment()
        known = {piece["name"]: piece for tier in self.tiers for piece in tier["pieces"]}
        refused = []
        for path in (path for path in paths if path.name != MANIFEST):
            try:
                self._take(path, known.get(path.name))
            except RefusedError as error:
                refused.append(str(error))
        for tier in self.tiers:
            if tier["pieces"] and not self.complete(tier) and not self.missing(tier):
                self._unpack(tier)
        self._stand_in()
        if refused:
            raise RefusedError("\n".join(refused))

    @property
    def manifest(self):
        return pieces.read_manifest(self.notes / MANIFEST)

    @property
    def tiers(self):
        return self.manifest["tiers"]

    def complete(self, tier):
        """Tell whether the tier of this manifest is unpacked."""
        return self._note(tier).get("contents") == tier["contents"]

    def missing(self, tier):
        """Return the names of the missing pieces of a tier."""
        if self.complete(tier):
            return []
        names = [piece["name"] for piece in tier["pieces"]]
        return [name for name in names if not (self.notes / name).exists()]

    def stand_ins(self):
        """Return the names of the libraries that are still empty."""
        empty = self.target / STAND_IN
        if not empty.exists():
            return []
        content = empty.read_bytes()
        places = (self.target / name for name in self.manifest["stand-ins"])
        return sorted(
            path.name
            for path in places
            if path.exists()
            and path.stat().st_size == len(content)
            and path.read_bytes() == content
        )

    def summary(self):
        """Return lines about complete tiers and missing pieces."""
        lines = []
        for tier in self.tiers:
            missing = self.missing(tier)
            if self.complete(tier):
                lines.append(f"{tier['name']}: complete")
            elif not tier["pieces"]:
                lines.append(f"{tier['name']}: not packed yet")
            elif len(missing) == len(tier["pieces"]):
                lines.append(f"{tier['name']}: all of its {len(missing)} pieces missing")
            else:
                count = f"{len(missing)} of {len(tier['pieces'])} pieces missing"
                lines.append(f"{tier['name']}: {count}: {' '.join(missing)}")
        return lines

    # What `add` does -----------------------------------------------------------------------------

    def _take_manifest(self, paths):
        kept = self.notes / MANIFEST
        if not paths:
            if not kept.exists():
                raise RefusedError(f"the first call needs {MANIFEST}, which lies beside the pieces")
            return
        contents = [pieces.read_manifest(path) for path in paths]
        if any(content != contents[0] for content in contents):
            raise RefusedError("these are pieces of two packings")
        wanted, running = contents[0]["python"], "{}.{}".format(*sys.version_info)
        if wanted != running:
            raise RefusedError(f"what is packed is for Python {wanted}, and this is {running}")
        pieces.write_json(kept, contents[0])
        # Another packing may have some of the same pieces and unpacked tiers.
        known = {piece["name"]: piece for tier in self.tiers for piece in tier["pieces"]}
        for path in self.notes.glob(f"*{SUFFIX}"):
            if path.name not in known or pieces.digest(path) != known[path.name]["sha256"]:
                path.unlink()

    def _make_environment(self):
        if not (self.target / "pyvenv.cfg").exists():
            venv.EnvBuilder(symlinks=True, with_pip=False).create(self.target)

    def _take(self, path, piece):
        if piece is None:
            raise RefusedError(f"{path.name} is no piece of this packing")
        (tier,) = (tier for tier in self.tiers if piece in tier["pieces"])
        kept = self.notes / path.name
        if self.complete(tier) or kept.exists():
            return
        incomplete = self.notes / f".incomplete-{path.name}"
        sha = hashlib.sha256()
        with path.open("rb") as source, incomplete.open("wb") as copy:
            while block := source.read(1 << 20):
                sha.update(block)
                copy.write(block)
        if sha.hexdigest() != piece["sha256"]:
            incomplete.unlink()
            raise RefusedError(f"{path.name} is damaged: it has another digest than was packed")
        incomplete.replace(kept)
        self._say(f"{path.name}: good")

    def _unpack(self, tier):
        self._say(f"{tier['name']}: unpacking")
        before = self._note(tier).get("files", [])
        kept = [self.notes / piece["name"] for piece in tier["pieces"]]
        files = pieces.unpack(kept, self.target)
        for gone in set(before) - set(files):
            (self.target / gone).unlink(missing_ok=True)
        note = {"contents": tier["contents"], "files": files}
        pieces.write_json(self.notes / f"{tier['name']}.json", note)
        for path in kept:
            path.unlink()
        self._say(f"{tier['name']}: complete")

    def _stand_in(self):
        empty = self.target / STAND_IN
        for name in self.manifest["stand-ins"] if empty.exists() else ():
            place = self.target / name
            if not place.resolve().is_relative_to(self.target.resolve()):
                raise RefusedError(f"{name!r} is outside of the folder")
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(empty, place)

    def _note(self, tier):
        path = self.notes / f"{tier['name']}.json"
        return json.loads(path.read_text()) if path.exists() else {}


def _listed(path):
    """Return a path, or for a folder, the paths of its pieces and manifest."""
    if not path.is_dir():
        if not path.exists():
            raise RefusedError(f"there is no {path}")
        return [path]
    return [*path.glob(MANIFEST), *sorted(path.glob(f"*{SUFFIX}"))]
