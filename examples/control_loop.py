"""Balance a pole at a fixed rate, and count missed deadlines.

A cart with a pole is simulated in real time. Its sensors give the position of the cart and the
angle of the pole, with noise. A Kalman filter, a linear feedback and a small network compute a
force from each reading, in one traced function whose variables keep the state between ticks.
`tf.function` and `fastops.function` run the function in turn, a block of ticks each. At the end,
each computes the commands for the readings of the other one. If a bit differs, the exit status is
1.
"""

import argparse
import gc
import itertools
import math
import operator
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import fastops

GRAVITY, CART, POLE, HALF_LENGTH = 9.81, 1.0, 0.1, 0.5
STRONGEST = 20.0  # newtons
NOISE = (0.001, 0.002)  # noise of the sensors, in metres and radians
GUST = 2.0  # newtons, the standard deviation of a random force on the cart
HIDDEN = 16
BLOCK = 0.25  # seconds
SPIN = 200_000  # nanoseconds before a deadline that are not slept, since sleeping may end late
WARM_UP = 20


# The plant ---------------------------------------------------------------------------------------


def accelerations(angle, turning, force):
    """Return the accelerations of the cart and the pole, caused by a force and by gravity."""
    sine, cosine = math.sin(angle), math.cos(angle)
    push = (force + POLE * HALF_LENGTH * turning**2 * sine) / (CART + POLE)
    fall = (GRAVITY * sine - cosine * push) / (
        HALF_LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE))
    )
    return push - POLE * HALF_LENGTH * fall * cosine / (CART + POLE), fall


def moved(state, force, seconds):
    """Return the state a short time later: position, speed, angle and angular speed."""
    place, speed, angle, turning = state
    push, fall = accelerations(angle, turning, force)
    speed, turning = speed + seconds * push, turning + seconds * fall
    return place + seconds * speed, speed, angle + seconds * turning, turning


class Plant:
    """The cart and its pole, which keep moving if a command is late."""

    def __init__(self, period, seed):
        self.period = period
        self.random = random.Random(seed)
        self.state = (0.0, 0.0, 0.05, 0.0)
        self.force = 0.0
        self.tilt = 0.0

    def read(self):
        place, _, angle, _ = self.state
        noise = self.random.gauss
        return np.array([place + noise(0, NOISE[0]), angle + noise(0, NOISE[1])], np.float32)

    def advance(self, ticks):
        for _ in range(ticks):
            force = self.force + self.random.gauss(0, GUST)
            self.state = moved(self.state, force, self.period)
            self.tilt = max(self.tilt, abs(self.state[2]))


# The controller ----------------------------------------------------------------------------------


def linear_model(period):
    """Return the matrices of the linearized motion in one tick: of the state, and of the force."""
    small = 1e-6
    rest = np.zeros(4)
    moves = [np.array(moved(row, 0.0, period)) / small for row in small * np.eye(4)]
    return np.stack(moves, axis=1), np.array([moved(rest, small, period)]).T / small


def feedback(a, b, period):
    """Return the gains of the linear-quadratic regulator (Riccati equation by doubling)."""
    price = 0.01 * period
    step, control = a, b @ b.T / price
    value = np.diag([10.0, 1.0, 100.0, 1.0]) * period
    for _ in range(50):
        inverse = np.linalg.inv(np.eye(4) + control @ value)
        value, control, step = (
            value + step.T @ value @ inverse @ step,
            control + step @ inverse @ control @ step.T,
            step @ inverse @ step,
        )
    return np.linalg.solve(price + b.T @ value @ b, b.T @ value @ a)


def network(generator):
    """Return the weights of a network that corrects the linear feedback.

    Linear feedback assumes that the effect of gravity grows linearly with the angle. The network
    returns the force that compensates for the difference. Its hidden layer is random, and its
    output layer is fitted to random states.
    """
    states = generator.uniform(-1, 1, (1000, 4)) * [1.0, 1.0, 0.5, 2.0]
    falls = np.array([accelerations(angle, 0.0, 0.0)[1] for angle in states[:, 2]])
    slope = accelerations(1e-6, 0.0, 0.0)[1] / 1e-6
    forces = (slope * states[:, 2] - falls) / accelerations(0.0, 0.0, 1.0)[1]
    hidden, bias = generator.normal(size=(4, HIDDEN)), generator.normal(size=HIDDEN)
    output, *_ = np.linalg.lstsq(np.tanh(states @ hidden + bias), forces[:, np.newaxis])
    return hidden, bias, output


class Controller(tf.Module):
    """Computes commands from readings. Its variables keep the state between readings."""

    def __init__(self, period, weights):
        super().__init__()
        a, b = linear_model(period)
        self.a, self.b = tf.constant(a, tf.float32), tf.constant(b, tf.float32)
        self.c = tf.constant([[1, 0, 0, 0], [0, 0, 1, 0]], tf.float32)
        self.process = tf.constant(GUST**2 * b @ b.T, tf.float32)
        self.sensors = tf.constant(np.diag(np.square(NOISE)), tf.float32)
        self.gains = tf.constant(feedback(a, b, period), tf.float32)
        self.hidden, self.bias, self.output = (
            tf.constant(weight, tf.float32) for weight in weights
        )
        self.estimate = tf.Variable(tf.zeros([4, 1]))
        self.covariance = tf.Variable(0.01 * tf.eye(4))
        self.command = tf.Variable(tf.zeros([1, 1]))
        self.start = [tf.constant(variable) for variable in self.variables]

    def step(self, reading):
        """Compute the command for a reading."""
        # Predict the state from the last estimate and the last command.
        predicted = self.a @ self.estimate + self.b @ self.command
        spread = tf.matmul(self.a @ self.covariance, self.a, transpose_b=True) + self.process
        # Correct the prediction by the reading.
        seen = tf.matmul(spread, self.c, transpose_b=True)
        gain = seen @ tf.linalg.inv(self.c @ seen + self.sensors)
        estimate = predicted + gain @ (reading[:, tf.newaxis] - self.c @ predicted)
        self.covariance.assign(spread - gain @ (self.c @ spread))
        # Compute a command against the estimated deviation.
        hidden = tf.tanh(tf.matmul(estimate, self.hidden, transpose_a=True) + self.bias)
        command = hidden @ self.output - self.gains @ estimate
        command = tf.clip_by_value(command, -STRONGEST, STRONGEST)
        self.estimate.assign(estimate)
        self.command.assign(command)
        return command[0, 0]

    def reset(self):
        for variable, value in zip(self.variables, self.start, strict=True):
            variable.assign(value)


# The loop ----------------------------------------------------------------------------------------


@dataclass
class Loop:
    """A plant, its controller, and the library that runs it.

    Attributes
    ----------
    name : str
        The name of the library.
    function : callable
        The controller's step.
    controller, plant : Controller, Plant
        The objects with the step's variables, and with the simulated cart.
    ticks, missed : int
        The number of ticks, and how many of them had no new command at their end.
    times : list of int
        The times of the steps, from the reading to the force, in nanoseconds.
    readings, commands : list
        The inputs of the steps, and their results.
    """

    name: str
    function: Callable
    controller: Controller
    plant: Plant
    ticks: int = 0
    missed: int = 0
    times: list = field(default_factory=list)
    readings: list = field(default_factory=list)
    commands: list = field(default_factory=list)

    def run(self, ticks, period):
        """Run a block of ticks, with a period in nanoseconds."""
        plant, tick = self.plant, 0
        start = perf_counter_ns() + SPIN
        while tick < ticks:
            wait(start + tick * period)
            begin = perf_counter_ns()
            reading = plant.read()
            command = self.function(reading)
            force = float(command)
            end = perf_counter_ns()
            self.times.append(end - begin)
            self.readings.append(reading)
            self.commands.append(command)
            coming = -((start - end) // period)  # the first tick that has not begun
            passed = min(coming, ticks) - tick
            if coming == tick + 1:
                plant.force = force
            else:  # the plant has kept moving with the last force
                self.missed += passed
            plant.advance(passed)
            plant.force = force
            tick += passed
        self.ticks += ticks

    def outcome(self):
        """Return the bits of all commands, and of the final variables."""
        return bits(self.commands) + bits(self.controller.variables)

    def replay(self, readings):
        """Return the bits of the commands and variables for other readings."""
        self.controller.reset()
        commands = [self.function(reading) for reading in readings]
        return bits(commands) + bits(self.controller.variables)


def bits(tensors):
    return [tensor.numpy().tobytes() for tensor in tensors]


def wait(start):
    """Wait until a time; sleep as long as that is safe."""
    if (left := start - perf_counter_ns() - SPIN) > 0:
        time.sleep(left / 1e9)
    while perf_counter_ns() < start:
        pass


def take_turns(loops, ticks, block, period):
    """Run the loops in turn, a block of ticks each."""
    gc.disable()
    try:
        # The progress bar is drawn between the blocks, because a thread that draws it would disturb
        # them.
        with Progress(console=Console(stderr=True), auto_refresh=False) as progress:
            starts = progress.track(range(0, ticks, block), description="blocks of ticks")
            for start, order in zip(starts, itertools.cycle([loops, loops[::-1]]), strict=False):
                for loop in order:
                    loop.run(min(block, ticks - start), period)
    finally:
        gc.enable()


def count_differences(loops):
    """Count differences after giving each loop the readings of the other one."""
    outcomes = [loop.outcome() for loop in loops]
    again = [other.replay(loop.readings) for loop, other in zip(loops, loops[::-1], strict=True)]
    return sum(map(operator.ne, itertools.chain(*again), itertools.chain(*outcomes)))


# The report --------------------------------------------------------------------------------------


def table(loops, rate):
    """Return a table of the figures, with a row for each loop."""
    result = Table(title=f"{loops[0].ticks:,} ticks at {rate:,g} Hz")
    result.add_column("run by", no_wrap=True)
    for column in ("missed", "p50 us", "p99 us", "worst us", "tilt"):
        result.add_column(column, justify="right", no_wrap=True)
    for loop in loops:
        p50, p99, worst = np.percentile(loop.times, [50, 99, 100]) / 1e3
        tilt = math.degrees(loop.plant.tilt)
        result.add_row(
            loop.name,
            f"{loop.missed:,} ({loop.missed / loop.ticks:.1%})",
            f"{p50:.1f}",
            f"{p99:.1f}",
            f"{worst:.1f}",
            f"{tilt:.1f} deg" if tilt < 90 else "it fell",
        )
    return result


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=2000, help="ticks per second")
    parser.add_argument("--seconds", type=float, default=5, help="seconds for each of the two")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the noise and the network")
    args = parser.parse_args(arguments)
    if not 0 < args.rate <= 1e6:
        parser.error("--rate: more than 0, and at most a million")
    if not 0 < args.seconds <= 86400:
        parser.error("--seconds: more than 0, and at most a day")
    return args


def main(arguments=None):
    args = parse(arguments)
    weights = network(np.random.default_rng(args.seed))
    loops = []
    for name, function in [("tf.function", tf.function), ("fastops.function", fastops.function)]:
        controller = Controller(1 / args.rate, weights)
        plant = Plant(1 / args.rate, args.seed)
        loops.append(Loop(name, function(controller.step), controller, plant))
        loops[-1].replay([np.zeros(2, np.float32)] * WARM_UP)
        controller.reset()

    period = round(1e9 / args.rate)
    ticks, block = (max(1, round(args.rate * seconds)) for seconds in (args.seconds, BLOCK))
    take_turns(loops, ticks, block, period)

    console = Console()
    console.print(table(loops, args.rate))
    (run,) = loops[1].function.describe()
    is_planned = run["executor"] == "plan"
    why = f"a plan of {run['nodes']} nodes" if is_planned else f"TensorFlow: {run['reason']}"
    console.print(f"fastops.function: {why}")
    steps = sum(len(loop.times) for loop in loops)
    differences = count_differences(loops)
    verdict = f"{differences} DIFFER" if differences else "bit-identical"
    console.print(f"commands for {steps:,} readings, replayed by the other: {verdict}")
    return 0 if is_planned and not differences else 1


if __name__ == "__main__":
    sys.exit(main())
