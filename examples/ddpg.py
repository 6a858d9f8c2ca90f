"""A Pendulum agent, trained by deep deterministic policy gradients (DDPG).

This is a plain Keras program. The policy acts eagerly, with one call of its model per step; updates
are a `tf.function`. ``python -m fastops examples/ddpg.py`` runs it faster with the same returns.
``--library torch`` trains a similar agent in PyTorch.
"""

import argparse
import copy
import hashlib
import time
from statistics import median

import gymnasium
import numpy as np

DISCOUNT = 0.99
KEEP = 0.995  # the share of the target weights that each update keeps
UNITS = 64
BATCH = 64
FIRST = 200  # steps before the first update
BOUND = 2.0


class Memory:
    """The stored steps, from which updates draw batches."""

    def __init__(self, size, seed):
        self.rows = np.zeros((size, 3 + 1 + 1 + 3), np.float32)
        self.count = 0
        self.generator = np.random.default_rng(seed)

    def add(self, before, action, reward, after):
        self.rows[self.count % len(self.rows)] = [*before, *action, reward, *after]
        self.count += 1

    def draw(self):
        """Return observations, actions, rewards and the observations after them."""
        rows = self.generator.integers(min(self.count, len(self.rows)), size=BATCH)
        return np.split(self.rows[rows], (3, 4, 5), axis=1)


def agent_keras(seed):
    """Return the functions that act and update, and the policy's weights, in Keras."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(seed)

    def network(inputs, last, activation):
        x = inputs[0] if len(inputs) == 1 else keras.layers.Concatenate()(inputs)
        for _ in range(2):
            x = keras.layers.Dense(UNITS, activation="relu")(x)
        return keras.Model(inputs, keras.layers.Dense(last, activation=activation)(x))

    actor = network([keras.Input((3,))], 1, "tanh")
    critic = network([keras.Input((3,)), keras.Input((1,))], 1, None)
    targets = keras.models.clone_model(actor), keras.models.clone_model(critic)
    for target, model in zip(targets, (actor, critic), strict=True):
        target.set_weights(model.get_weights())
    optimizers = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(2e-3)

    def act(observation):
        return BOUND * actor(tf.convert_to_tensor(observation[np.newaxis]))[0].numpy()

    @tf.function
    def update(before, action, reward, after):
        wanted = reward + DISCOUNT * targets[1]([after, BOUND * targets[0](after)])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(wanted - critic([before, action])))
        slopes = tape.gradient(loss, critic.trainable_variables)
        optimizers[1].apply(slopes, critic.trainable_variables)
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic([before, BOUND * actor(before)]))
        slopes = tape.gradient(loss, actor.trainable_variables)
        optimizers[0].apply(slopes, actor.trainable_variables)
        for target, model in zip(targets, (actor, critic), strict=True):
            for old, new in zip(target.weights, model.weights, strict=True):
                old.assign(KEEP * old + (1.0 - KEEP) * new)

    return act, lambda *rows: update(*map(tf.convert_to_tensor, rows)), actor.get_weights


def agent_torch(seed):
    """Return the functions that act and update, and the policy's weights, in PyTorch."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)

    def network(first, *last):
        layers = [nn.Linear(first, UNITS), nn.ReLU(), nn.Linear(UNITS, UNITS), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(UNITS, 1), *last)

    actor, critic = network(3, nn.Tanh()), network(4)
    targets = copy.deepcopy(actor), copy.deepcopy(critic)
    optimizers = (
        torch.optim.Adam(actor.parameters(), 1e-3),
        torch.optim.Adam(critic.parameters(), 2e-3),
    )

    @torch.no_grad()
    def act(observation):
        return BOUND * actor(torch.as_tensor(observation[np.newaxis]))[0].numpy()

    def update(*rows):
        before, action, reward, after = map(torch.as_tensor, rows)
        with torch.no_grad():
            following = torch.cat([after, BOUND * targets[0](after)], 1)
            wanted = reward + DISCOUNT * targets[1](following)
        loss = torch.mean((wanted - critic(torch.cat([before, action], 1))) ** 2)
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
        loss = -critic(torch.cat([before, BOUND * actor(before)], 1)).mean()
        optimizers[0].zero_grad()
        loss.backward()
        optimizers[0].step()
        with torch.no_grad():
            for target, model in zip(targets, (actor, critic), strict=True):
                for old, new in zip(target.parameters(), model.parameters(), strict=True):
                    old.mul_(KEEP).add_(new, alpha=1.0 - KEEP)

    return act, update, lambda: [weight.detach().numpy() for weight in actor.parameters()]


def train(environment, agent, episodes, seed):
    """Train an agent; return the return of each episode, and the seconds of each step."""
    act, update, _ = agent
    memory = Memory(10_000, seed)
    returns, took = [], []
    for episode in range(episodes):
        observation, _ = environment.reset(seed=seed + episode)
        total, done = 0.0, False
        while not done:
            begin = time.perf_counter()
            noise = memory.generator.normal(scale=0.2, size=1)
            action = np.clip(act(observation) + noise, -BOUND, BOUND).astype(np.float32)
            after, reward, terminated, truncated, _ = environment.step(action)
            memory.add(observation, action, reward, after)
            observation, total, done = after, total + reward, terminated or truncated
            if memory.count >= FIRST:
                update(*memory.draw())
            took.append(time.perf_counter() - begin)
        returns.append(round(float(total), 2))
    return returns, took


def import_library(library):
    """Import a library, and the modules that it imports on first use."""
    if library == "torch":
        import torch

        # The first optimizer imports torch._dynamo, which takes almost a second.
        torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    else:
        import keras  # noqa: F401


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", choices=("keras", "torch"), default="keras")
    args = parser.parse_args()
    import_library(args.library)  # takes seconds, and is not measured
    environment = gymnasium.make("Pendulum-v1")
    begin = time.perf_counter()
    agent = (agent_keras if args.library == "keras" else agent_torch)(args.seed)
    returns, took = train(environment, agent, args.episodes, args.seed)
    seconds = time.perf_counter() - begin
    whole = seconds / len(took)
    # Leave out the first half, in which kernels are prepared and calls recorded.
    steady = median(took[len(took) // 2 :])
    print("returns:", *returns)
    weights = b"".join(map(np.ndarray.tobytes, agent[2]()))
    print("weights:", hashlib.sha256(weights).hexdigest())
    print(f"seconds: {seconds:.2f}, {whole * 1e6:.1f} us a step, {steady * 1e6:.1f} us when steady")


if __name__ == "__main__":
    main()
