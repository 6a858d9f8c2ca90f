"""The bill of materials of a wheel, as CycloneDX: the origins of the code in its libraries.

PEP 770 specifies such files in ``.dist-info/sboms``.
"""

import hashlib
import json
import uuid

from . import BUILDER

# Packages whose inline code is in the libraries, from TensorFlow's headers and from others.
INLINED = (
    ("abseil-cpp", "Apache-2.0"),
    ("eigen", "MPL-2.0"),
    ("protobuf", "BSD-3-Clause"),
    ("onednn", "Apache-2.0"),
    ("xla", "Apache-2.0"),
)


def bill(version, builds, files, numpy):
    """Return the bill as the bytes of a file.

    Parameters
    ----------
    version
        The version of fastops.
    builds
        The properties by which builds of TensorFlow are recognized.
    files
        The contents of the wheel, by name.
    numpy
        The requirement of the NumPy whose headers were used.
    """
    tensorflows = sorted({build["version"] for build in builds})
    components = [
        *(_package("tensorflow", release, "Apache-2.0") for release in tensorflows),
        *(_library(name, terms) for name, terms in INLINED),
        *(
            _package(*pin.split("=="), terms)
            for pin, terms in ((BUILDER[0], "Apache-2.0"), (numpy, "BSD-3-Clause"))
        ),
        *(
            {
                "type": "file",
                "bom-ref": f"file:{name}",
                "name": name,
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
            }
            for name, content in sorted(files.items())
            if name.endswith(".so")
        ),
    ]
    subject = _package("fastops", version, "Apache-2.0") | {"type": "library"}
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": subject,
            "lifecycles": [{"phase": "build"}],
        },
        "components": components,
        "dependencies": [
            {
                "ref": subject["bom-ref"],
                "dependsOn": [component["bom-ref"] for component in components],
            }
        ],
    }
    # The serial number depends only on the content.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made))
    made = {"bomFormat": made["bomFormat"], "serialNumber": f"urn:uuid:{number}"} | made
    return (json.dumps(made, indent=1) + "\n").encode()


def _package(name, version, terms):
    purl = f"pkg:pypi/{name}@{version}"
    return _library(name, terms) | {"bom-ref": purl, "version": version, "purl": purl}


def _library(name, terms):
    return {
        "type": "library",
        "bom-ref": f"inlined:{name}",
        "name": name,
        "licenses": [{"license": {"id": terms}}],
    }
