"""Replace the machine code for other GPUs in libraries by zeros, which compress well.

A library has its kernels in *fat binaries*: a header, and for each kind of GPU an entry with its
own header that says which GPUs it is for. The driver chooses an entry by these headers, so all
headers and offsets stay. The code of entries that the driver would not choose becomes zeros.
"""

import struct
from typing import NamedTuple

CONTAINER = struct.Struct("<IHHQ")
"""A magic number, a version, the size of this header, and the size of all entries."""

ENTRY = struct.Struct("<HHIQ8xHHI")
"""The kind of an entry, flags, the sizes of its header and of its code, and its architecture."""

MAGIC = 0xBA55ED50
PTX, CUBIN = 1, 2
LARGEST_HEADER = 4096


class Entry(NamedTuple):
    """The code in a fat binary for one kind of GPU: its offset and its architecture.

    `architecture` is a compute capability without the point, such as 90.
    """

    kind: int
    architecture: int
    start: int
    size: int


def fat_binaries(content):
    """Yield the entries of each fat binary in the bytes of a library."""
    magic, place = struct.pack("<I", MAGIC), 0
    while (place := content.find(magic, place)) >= 0:
        entries, end = _entries(content, place)
        if entries:
            yield entries
        place = max(end, place + len(magic))


def _entries(content, place):
    """Return the entries of the fat binary at an offset, and its end; none if it is not one."""
    if len(content) - place < CONTAINER.size:
        return [], 0
    _, version, header, size = CONTAINER.unpack_from(content, place)
    start, end = place + header, place + header + size
    if version != 1 or header != CONTAINER.size or end > len(content):
        return [], 0
    entries = []
    while start < end:
        if end - start < ENTRY.size:
            return [], 0
        kind, _, header, size, _, _, architecture = ENTRY.unpack_from(content, start)
        sound = ENTRY.size <= header <= LARGEST_HEADER and start + header + size <= end
        if not sound or not 10 <= architecture <= 999:
            return [], 0
        entries.append(Entry(kind, architecture, start + header, size))
        start += header + size
    return entries, end


def superfluous(entries, architecture):
    """Return the entries of a fat binary that a GPU of an architecture does not use.

    A GPU uses machine code of its own generation that is not newer than the GPU. If there is none,
    the driver compiles the newest PTX that is not newer. Entries of other kinds stay.
    """

    def runs(entry):
        return entry.architecture <= architecture and (
            entry.kind == PTX or entry.architecture // 10 == architecture // 10
        )

    usable = [entry for entry in entries if entry.kind in (PTX, CUBIN) and runs(entry)]
    machine_code = [entry for entry in usable if entry.kind == CUBIN]
    newest = max((entry.architecture for entry in usable if entry.kind == PTX), default=0)
    kept = machine_code or [entry for entry in usable if entry.architecture == newest]
    return [entry for entry in entries if entry.kind in (PTX, CUBIN) and entry not in kept]


def reduce(content, architecture):
    """Return the bytes of a library with zeros in place of code that a GPU does not use."""
    places = [
        entry for entries in fat_binaries(content) for entry in superfluous(entries, architecture)
    ]
    if not places:
        return content
    content = bytearray(content)
    for entry in places:
        content[entry.start : entry.start + entry.size] = bytes(entry.size)
    return bytes(content)
