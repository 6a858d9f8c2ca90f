"""Delays imports: ``python -m fastops`` must not import TensorFlow before its program does.

Then settings that a program makes before it imports TensorFlow, such as ``TF_ENABLE_ONEDNN_OPTS``,
have the same effect as in a plain run. Python imports the package before its ``__main__``, so the
package asks `is_due` whether to delay its own imports, too.
"""

import sys


def is_due():
    """Tell whether Python is about to run ``python -m fastops``."""
    if sys.argv[:1] != ["-m"]:  # `sys.argv` starts so until Python has found the module
        return False
    name = sys.orig_argv[-len(sys.argv)]
    return name == "fastops" or (name.startswith("-") and name.endswith("mfastops"))


def load():
    """End the delay: the next import of fastops imports the whole package."""
    if "fastops._api" not in sys.modules:
        for name in [name for name in sys.modules if name.partition(".")[0] == "fastops"]:
            del sys.modules[name]
