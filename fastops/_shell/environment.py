"""The ``FASTOPS_*`` variables of the environment."""

import os
from dataclasses import dataclass

from fastops._core.options import CHOICES, choose, one_of, set_everywhere
from fastops._core.preparing import be_direct_on
from fastops._install.verify.results import set_default
from fastops._reports.cache import set_cache_size
from fastops._shell.verification import parse


@dataclass(frozen=True)
class EnvironmentVariable:
    """One ``FASTOPS_*`` variable: read once, when fastops is imported."""

    name: str
    default: str
    choices: tuple[str, ...] | None
    meaning: str

    @property
    def value(self):
        """The effective value: the value of the variable, or its default."""
        return os.environ.get(self.name) or self.default


_DEVICES = ("none", "plugins", "all")

ENVIRONMENT = (
    EnvironmentVariable(
        "FASTOPS_PATH", "auto", CHOICES["path"], "options(path=...) of every new thread"
    ),
    EnvironmentVariable(
        "FASTOPS_ON_FALLBACK",
        "ignore",
        CHOICES["on_fallback"],
        "options(on_fallback=...) of every new thread",
    ),
    EnvironmentVariable(
        "FASTOPS_ONEDNN", "auto", CHOICES["onednn"], "options(onednn=...) of every new thread"
    ),
    EnvironmentVariable(
        "FASTOPS_THREADS", "auto", CHOICES["threads"], "options(threads=...) of every new thread"
    ),
    EnvironmentVariable(
        "FASTOPS_DEVICES",
        "plugins",
        _DEVICES,
        "devices besides the host on which calls may be direct (GPUs only with `all`)",
    ),
    EnvironmentVariable(
        "FASTOPS_CACHE_SIZE", "256", None, "how many prepared kernels each op may keep"
    ),
    EnvironmentVariable(
        "FASTOPS_INSTALL",
        "0",
        ("0", "1"),
        "whether `import fastops`, and under pytest `import tensorflow`, calls fastops.install()",
    ),
    EnvironmentVariable(
        "FASTOPS_VERIFY",
        "0",
        ("0", "1", "raise", "warn", "raise:N", "warn:N"),
        "install(verify=..., verify_every=N): whether each call, or one call in N, runs in "
        "TensorFlow's own code as well, and the results are compared",
    ),
)


def read_environment():
    """Apply the ``FASTOPS_*`` variables to this thread and to all new threads.

    Returns
    -------
    bool
        Whether `install` should be called, too.
    """
    value = {variable.name: variable.value for variable in ENVIRONMENT}
    settings = {
        setting: choose(setting, value[f"FASTOPS_{setting.upper()}"], f"FASTOPS_{setting.upper()}")
        for setting in CHOICES
    }
    set_everywhere(**settings)
    be_direct_on(one_of(_DEVICES, value["FASTOPS_DEVICES"], "FASTOPS_DEVICES"))
    try:
        set_cache_size(int(value["FASTOPS_CACHE_SIZE"]))
    except ValueError:
        size = value["FASTOPS_CACHE_SIZE"]
        raise ValueError(f"FASTOPS_CACHE_SIZE must be a positive number, not {size!r}") from None
    set_default(*parse(value["FASTOPS_VERIFY"]))
    return one_of(("0", "1"), value["FASTOPS_INSTALL"], "FASTOPS_INSTALL") == "1"
