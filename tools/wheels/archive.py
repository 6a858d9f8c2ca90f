"""Read and write wheels as archives, with reproducible bytes."""

import base64
import csv
import hashlib
import io
import zipfile

EPOCH = (2020, 2, 2, 0, 0, 0)
"""The modification time of all files in a wheel, fixed so that equal content gives equal bytes."""


def read(path):
    """Return the contents of the files of a wheel, by name."""
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()
        }


def write(path, files):
    """Write a wheel with a fixed order, date and permissions, and a new RECORD.

    Parameters
    ----------
    path
        The path of the wheel.
    files
        Contents of files, by name. The content of RECORD is ignored.
    """
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    files = files | {record: _record(files, record)}
    complete = path.with_name(f"{path.name}.incomplete")
    with zipfile.ZipFile(complete, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        # The metadata, which tools read first, come last, as the format recommends.
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, for the permissions
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
