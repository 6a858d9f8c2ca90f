"""A wheel as an archive, and how it is made the same each time."""

import base64
import csv
import hashlib
import io
import zipfile

EPOCH = (2020, 2, 2, 0, 0, 0)
"""When each file in a wheel says that it was changed: nobody asks, and it must not differ."""


def read(path):
    """Return the files of a wheel: their contents by their names."""
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()
        }


def write(path, files):
    """Write a wheel: in an order, with one date and one set of permissions, and a new RECORD.

    Parameters
    ----------
    path
        Of the wheel.
    files
        Contents by names; of RECORD the name counts.
    """
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    files = files | {record: _record(files, record)}
    complete = path.with_name(f"{path.name}.incomplete")
    with zipfile.ZipFile(complete, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        # What tools read first to know a wheel stands last, as the format recommends.
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, of which the permissions are
            info.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(info, files[name], compresslevel=9)
    complete.replace(path)


def _record(files, record):
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    for name in sorted(files):
        if name == record:
            lines.writerow([name, "", ""])
        else:
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest())
            lines.writerow([name, f"sha256={digest.rstrip(b'=').decode()}", len(files[name])])
    return text.getvalue().encode()
