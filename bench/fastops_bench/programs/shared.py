"""What the programs share: options, times, printed results, and two environments."""

import argparse
import hashlib
import math
import time
from statistics import median

import numpy as np


def options(text, **numbers):
    """Read the command line: ``--NAME=NUMBER`` for each keyword, with its default, and a seed."""
    parser = argparse.ArgumentParser(description=text)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


class Times:
    """Measure the pieces of work of a program, from now on.

    Parameters
    ----------
    piece : str
        What a piece is called: "step".
    """

    def __init__(self, piece):
        self._piece = piece
        self._count = 0
        self._each = []
        self._begin = self._last = time.perf_counter()

    def lap(self, pieces=1):
        """Note that some pieces have been done since the last call."""
        now = time.perf_counter()
        self._each.append((now - self._last) / pieces)
        self._count += pieces
        self._last = now

    def report(self, values, weights):
        """Print some of the values that were computed, a digest of all results, and the times.

        The first time is the mean of a piece over the whole run. The second one is the median of
        the later half of the laps, when nothing is done for the first time.
        """
        seconds = self._last - self._begin
        whole, steady = seconds / self._count, median(self._each[len(self._each) // 2 :])
        values = np.asarray(values, np.float64)
        digest = hashlib.sha256(values.tobytes())
        for weight in weights:
            digest.update(np.ascontiguousarray(weight).tobytes())
        shown = values[np.linspace(0, len(values) - 1, min(len(values), 6)).astype(int)]
        print("values:", *(f"{value:.9g}" for value in shown))
        print("digest:", digest.hexdigest())
        print(
            f"seconds: {seconds:.2f}, {whole * 1e6:.1f} us a {self._piece}, "
            f"{steady * 1e6:.1f} us when steady"
        )


def prepare_torch(seed):
    """Seed PyTorch, and let it use one thread, as the other libraries in these benchmarks."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    # The first optimizer imports torch._dynamo, which takes most of a second.
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])


class CartPole:
    """A pole on a cart, by the equations of Barto, Sutton and Anderson (1983).

    Its methods have the arguments and results of Gymnasium's environments.
    """

    GRAVITY, CART, POLE, LENGTH, FORCE, INTERVAL = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    LIMIT = 500

    def reset(self, seed=None):
        """Begin an episode; return the first observation."""
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        self._state = tuple(self._generator.uniform(-0.05, 0.05, 4).tolist())
        self._steps = 0
        return np.array(self._state, np.float32), {}

    def step(self, action):
        """Push the cart to the left (0) or to the right (1)."""
        x, speed, angle, turn = self._state
        force = self.FORCE if action == 1 else -self.FORCE
        sine, cosine = math.sin(angle), math.cos(angle)
        mass, moment = self.CART + self.POLE, self.POLE * self.LENGTH
        pushed = (force + moment * turn * turn * sine) / mass
        bent = (self.GRAVITY * sine - cosine * pushed) / (
            self.LENGTH * (4.0 / 3.0 - self.POLE * cosine * cosine / mass)
        )
        moved = pushed - moment * bent * cosine / mass
        self._state = (
            x + self.INTERVAL * speed,
            speed + self.INTERVAL * moved,
            angle + self.INTERVAL * turn,
            turn + self.INTERVAL * bent,
        )
        self._steps += 1
        fallen = abs(self._state[0]) > 2.4 or abs(self._state[2]) > 12 * math.pi / 180
        over = self._steps >= self.LIMIT
        return np.array(self._state, np.float32), 1.0, fallen, over, {}


class Pendulum:
    """A pendulum to be swung up and held, with Gymnasium's constants, arguments and results."""

    GRAVITY, MASS, LENGTH, INTERVAL, SPEED, TORQUE = 10.0, 1.0, 1.0, 0.05, 8.0, 2.0
    LIMIT = 200

    def reset(self, seed=None):
        """Begin an episode; return the first observation."""
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        self._angle = float(self._generator.uniform(-math.pi, math.pi))
        self._turn = float(self._generator.uniform(-1.0, 1.0))
        self._steps = 0
        return self._observation(), {}

    def step(self, action):
        """Apply a torque, an array with one number."""
        torque = min(max(float(action[0]), -self.TORQUE), self.TORQUE)
        off = (self._angle + math.pi) % (2 * math.pi) - math.pi
        cost = off * off + 0.1 * self._turn * self._turn + 0.001 * torque * torque
        push = 3 * self.GRAVITY / (2 * self.LENGTH) * math.sin(self._angle)
        push += 3 * torque / (self.MASS * self.LENGTH**2)
        self._turn = min(max(self._turn + push * self.INTERVAL, -self.SPEED), self.SPEED)
        self._angle += self._turn * self.INTERVAL
        self._steps += 1
        return self._observation(), -cost, False, self._steps >= self.LIMIT, {}

    def _observation(self):
        return np.array([math.cos(self._angle), math.sin(self._angle), self._turn], np.float32)
