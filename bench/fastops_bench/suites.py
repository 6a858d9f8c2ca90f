"""The suites: their names and titles, and where they run."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Suite:
    """A file of benchmarks.

    Attributes
    ----------
    title : str
        A description of what is measured.
    peers : tuple of str
        Libraries that are measured in their own environments, with ``--peers``.
    plain : bool
        Whether the suite also runs without oneDNN.
    """

    title: str
    peers: tuple[str, ...] = ()
    plain: bool = False


FRAMEWORKS = ("torch", "jax")

SUITES = {
    "ladder": Suite("Each op on every layer", ("tensorflow", *FRAMEWORKS), plain=True),
    "tape": Suite("Ops on a gradient tape, and the tape itself"),
    "gradients": Suite("Gradients of small functions", ("torch",)),
    "indexing": Suite("Indexing, slicing, gathering and scattering", FRAMEWORKS),
    "variables": Suite("Variables: reading, assigning, sparse updates", ("torch",)),
    "arrays": Suite("Constants and conversions: arrays, numbers and lists in and out"),
    "install": Suite("Unchanged programs under fastops.install"),
    "public": Suite("Every public function that eager programs call"),
    "perceptron": Suite("A perceptron, operator by operator", ("torch",)),
    "function": Suite("Traced functions, and sessions", plain=True),
    "serving": Suite("A saved network, asked for one image at a time", ("torch", "onnxruntime")),
    "keras": Suite("Keras's models, training steps and loops", ("torch",)),
    "backend": Suite("fastops.backend beside tf_keras's backend"),
    "backend_keras": Suite("fastops.backend.keras beside Keras's TensorFlow backend"),
    "libraries": Suite("Libraries built on TensorFlow"),
    "programs": Suite("Whole programs of examples/, each in a process of its own"),
    "strangers": Suite("Programs as users write them, each in a process of its own"),
    "short": Suite("Programs that end before what is learned of them pays"),
    "threads": Suite("Whose threads run a kernel's tasks"),
    "sizes": Suite("From one element to ten million", FRAMEWORKS),
    "scaling": Suite("Numbers of ops, inputs, attributes and kernels", ("torch",)),
    "latency": Suite("Single calls: how the time of one call is distributed", ("torch",)),
    "fallback": Suite("Calls that fastops leaves to TensorFlow"),
    "memory": Suite("Whether memory stays flat"),
    "import": Suite("What import fastops adds"),
}


def path(name):
    return HERE / f"bench_{name}.py"
