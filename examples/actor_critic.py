"""A CartPole agent with a critic, as a Keras model that is trained eagerly.

This is a plain Keras program, with one call of the model per step, and one tape per episode.
``python -m fastops examples/actor_critic.py`` runs it faster with the same returns. ``--library
torch`` trains a similar agent in PyTorch.
"""

import argparse
import hashlib
import time
from operator import truediv
from statistics import median

import gymnasium
import numpy as np

DISCOUNT = 0.99
RATE = 0.01
UNITS = 64


def returns_to_go(rewards):
    """Return the discounted sums of rewards, with mean 0 and deviation 1."""
    sums, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + DISCOUNT * total
        sums.append(total)
    sums = np.array(sums[::-1], np.float32)
    return (sums - sums.mean()) / (sums.std() + 1e-8)


def play(environment, choose, seed):
    """Play an episode, choosing an action for each observation; return the rewards."""
    observation, _ = environment.reset(seed=seed)
    rewards, done = [], False
    while not done:
        observation, reward, terminated, truncated, _ = environment.step(choose(observation))
        rewards.append(reward)
        done = terminated or truncated
    return rewards


def train_keras(environment, episodes, seed):
    """Train an agent; return the length and the seconds of each episode, and the weights."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(seed)
    generator = np.random.default_rng(seed)
    observed = keras.Input((4,))
    hidden = keras.layers.Dense(UNITS, activation="relu")(observed)
    model = keras.Model(observed, [keras.layers.Dense(2)(hidden), keras.layers.Dense(1)(hidden)])
    optimizer, huber = keras.optimizers.Adam(RATE), keras.losses.Huber(reduction="sum")
    lengths, took = [], []
    for episode in range(episodes):
        begin = time.perf_counter()
        chances, values = [], []

        def choose(observation, chances=chances, values=values):
            logits, value = model(tf.convert_to_tensor(observation[np.newaxis]))
            probabilities = tf.nn.softmax(logits)
            action = int(generator.random() < float(probabilities[0, 1]))
            chances.append(tf.math.log(probabilities[0, action]))
            values.append(value[0, 0])
            return action

        with tf.GradientTape() as tape:
            rewards = play(environment, choose, seed + episode)
            returns = tf.convert_to_tensor(returns_to_go(rewards))
            values = tf.stack(values)
            advantages = tf.stop_gradient(returns - values)
            loss = huber(returns, values) - tf.reduce_sum(tf.stack(chances) * advantages)
        slopes = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        lengths.append(len(rewards))
        took.append(time.perf_counter() - begin)
    return lengths, took, model.get_weights()


def train_torch(environment, episodes, seed):
    """Train a similar agent in PyTorch."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    generator = np.random.default_rng(seed)
    hidden, actor, critic = nn.Linear(4, UNITS), nn.Linear(UNITS, 2), nn.Linear(UNITS, 1)
    parameters = [weight for module in (hidden, actor, critic) for weight in module.parameters()]
    optimizer = torch.optim.Adam(parameters, RATE)
    lengths, took = [], []
    for episode in range(episodes):
        begin = time.perf_counter()
        chances, values = [], []

        def choose(observation, chances=chances, values=values):
            x = torch.relu(hidden(torch.as_tensor(observation[np.newaxis])))
            probabilities = torch.softmax(actor(x), -1)
            action = int(generator.random() < float(probabilities[0, 1].detach()))
            chances.append(torch.log(probabilities[0, action]))
            values.append(critic(x)[0, 0])
            return action

        rewards = play(environment, choose, seed + episode)
        returns, values = torch.as_tensor(returns_to_go(rewards)), torch.stack(values)
        advantages = (returns - values).detach()
        loss = nn.functional.huber_loss(values, returns, reduction="sum")
        loss = loss - (torch.stack(chances) * advantages).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(len(rewards))
        took.append(time.perf_counter() - begin)
    return lengths, took, [weight.detach().numpy() for weight in parameters]


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
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", choices=("keras", "torch"), default="keras")
    args = parser.parse_args()
    train = train_keras if args.library == "keras" else train_torch
    import_library(args.library)  # takes seconds, and is not measured
    environment = gymnasium.make("CartPole-v1")
    begin = time.perf_counter()
    lengths, took, weights = train(environment, args.episodes, args.seed)
    seconds = time.perf_counter() - begin
    whole = seconds / sum(lengths)
    # Leave out the first half, in which kernels are prepared and calls recorded.
    half = len(took) // 2
    steady = median(map(truediv, took[half:], lengths[half:]))
    print("returns:", *lengths)
    print("weights:", hashlib.sha256(b"".join(map(np.ndarray.tobytes, weights))).hexdigest())
    print(f"seconds: {seconds:.2f}, {whole * 1e6:.1f} us a step, {steady * 1e6:.1f} us when steady")


if __name__ == "__main__":
    main()
