"""Archives in pieces: splitting a stream, the manifest, and joining.

A *tier* is a compressed archive of files that are needed at the same time. It is split into pieces
small enough for transport. The manifest has the tiers in the order in which they are needed, their
pieces, and the digest of each piece.
"""

import hashlib
import io
import json
import lzma
import shutil
import tarfile
from pathlib import Path

FORMAT = 1
MANIFEST = "manifest.json"
SUFFIX = ".piece"
EPOCH = 1580601600
"""The modification time of all files in an archive, fixed so that equal content gives equal
bytes."""


class RefusedError(Exception):
    """A file does not match the manifest, or its path is outside of the folder."""


# The manifest -------------------------------------------------------------------------------------


def read_manifest(path):
    """Read a manifest; raise an error if the file is not one."""
    try:
        manifest = json.loads(path.read_text())
        good = manifest["format"] == FORMAT and isinstance(manifest["tiers"], list)
    except (ValueError, KeyError, TypeError):
        good = False
    if not good:
        raise RefusedError(f"{path} is not a manifest of this tool")
    for tier in manifest["tiers"]:
        for name in (tier["name"], *(piece["name"] for piece in tier["pieces"])):
            # The names become names of files.
            if not name or name != name.replace("/", "").replace("\\", "").lstrip("."):
                raise RefusedError(f"{path} has a piece with an invalid name: {name!r}")
    return manifest


def write_json(path, content):
    """Write a file completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    incomplete = path.with_name(f".incomplete-{path.name}")
    incomplete.write_text(json.dumps(content, indent=1) + "\n")
    incomplete.replace(path)


def digest(path):
    """Return the SHA-256 of a file."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()


# Making -------------------------------------------------------------------------------------------


class Splitter(io.RawIOBase):
    """A stream that writes its bytes into pieces.

    Parameters
    ----------
    folder : Path
        The folder of the pieces.
    stem : str
        The beginning of their names.
    largest : int
        The maximum size of a piece in bytes.
    on_piece : callable
        Called with each complete piece.

    Attributes
    ----------
    pieces : list of dict
        The name, size and digest of each complete piece.
    """

    def __init__(self, folder, stem, largest, on_piece=lambda piece: None):
        self.pieces = []
        self._folder, self._stem, self._largest = folder, stem, largest
        self._on_piece = on_piece
        self._file = None

    def writable(self):
        return True

    def write(self, content):
        left = memoryview(content).cast("B")
        while left:
            if self._file is None:
                self._begin()
            part = left[: self._largest - self._size]
            self._file.write(part)
            self._digest.update(part)
            self._size += len(part)
            left = left[len(part) :]
            if self._size == self._largest:
                self._end()
        return len(content)

    def close(self):
        if self._file is not None:
            self._end()
        super().close()

    def _begin(self):
        self._name = f"{self._stem}-{len(self.pieces) + 1:03}{SUFFIX}"
        self._file = (self._folder / f".incomplete-{self._name}").open("wb")
        self._digest, self._size = hashlib.sha256(), 0

    def _end(self):
        self._file.close()
        self._file = None
        (self._folder / f".incomplete-{self._name}").replace(self._folder / self._name)
        piece = {"name": self._name, "size": self._size, "sha256": self._digest.hexdigest()}
        self.pieces.append(piece)
        self._on_piece(piece)


def pack(files, stream, preset, content=lambda path: path.read_bytes()):
    """Write a compressed archive with a fixed order, date and owner.

    Parameters
    ----------
    files : dict of str to Path
        The files, by name in the archive.
    stream : file-like
        The stream to which the archive is written.
    preset : int
        The preset of xz. A greater one gives a smaller archive and takes longer.
    content : callable
        Returns the content of a file for the archive.
    """
    with (
        lzma.open(stream, "wb", preset=preset) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(files):
            path = files[name]
            info = tarfile.TarInfo(name)
            info.mtime = EPOCH
            info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            data = content(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


# Putting together ---------------------------------------------------------------------------------


class Joined(io.RawIOBase):
    """A stream of the bytes of several files, one after the other."""

    def __init__(self, paths):
        self._left = list(paths)
        self._file = None

    def readable(self):
        return True

    def readinto(self, buffer):
        while True:
            if self._file is None:
                if not self._left:
                    return 0
                self._file = self._left.pop(0).open("rb")
            if count := self._file.readinto(buffer):
                return count
            self._file.close()
            self._file = None

    def close(self):
        if self._file is not None:
            self._file.close()
        super().close()


def unpack(paths, target):
    """Unpack the archive in pieces; return the names of its files.

    An existing file is replaced and not overwritten, since a process may have it open. Files get
    the present time, so that Python recognizes old bytecode. The filters of `tarfile` that keep
    archives within a folder are not used, because some of the Pythons that run the tests do not
    have them.
    """
    names = []
    with (
        io.BufferedReader(Joined(paths), 1 << 20) as joined,
        tarfile.open(fileobj=joined, mode="r|xz") as archive,
    ):
        for member in archive:
            place = _inside(target, member.name)
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            if not member.isfile():
                raise RefusedError(f"{member.name!r} is neither a file nor a folder")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            with archive.extractfile(member) as source, open(place, "xb") as out:
                shutil.copyfileobj(source, out)
            place.chmod(0o755 if member.mode & 0o100 else 0o644)
            names.append(str(place.relative_to(target)))
    return names


def _inside(target, name):
    """Return the path of a file of an archive, which must be in the folder."""
    path = Path(name.lstrip("/"))
    place = target / path
    if ".." in path.parts or not place.parent.resolve().is_relative_to(target.resolve()):
        raise RefusedError(f"{name!r} would be outside of the folder")
    return place
