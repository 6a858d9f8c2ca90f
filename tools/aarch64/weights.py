"""Train the demo's network, and write all weights: the same program for two processors.

``FILE`` gets the weights of each way of training as hexadecimal floats, as fastops computes them.
"""

import json
import sys
from pathlib import Path

IMAGES = 200

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import digits_online as demo  # noqa: E402


def train(library, task):
    """Return the weights after one pass over some images."""
    model = demo.Model(library, seed=1)
    train, _, _ = demo.read_digits(IMAGES)
    with library.scope(task):
        for row in train:
            demo.TASKS[task](library, model, *map(library.tensor, row))
    return [
        float(number).hex()
        for weight in model.weights
        for number in library.numpy(weight).ravel().tolist()
    ]


def main():
    library = demo.FastOps("auto")
    weights = {task: train(library, task) for task in demo.TRAINING}
    Path(sys.argv[1]).write_text(json.dumps(weights))


if __name__ == "__main__":
    main()
