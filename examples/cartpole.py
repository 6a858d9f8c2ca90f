"""A CartPole agent, trained by REINFORCE in eager mode.

This is a plain TensorFlow program. ``python -m fastops examples/cartpole.py`` runs it faster with
the same returns.
"""

import argparse
import hashlib
import time

import gymnasium
import numpy as np
import tensorflow as tf


class Policy:
    """Two dense layers, from an observation to the logits of the actions."""

    def __init__(self, observations, actions, hidden=32):
        def glorot(rows, columns):
            limit = (6.0 / (rows + columns)) ** 0.5
            return tf.Variable(tf.random.uniform([rows, columns], -limit, limit))

        self.variables = [
            glorot(observations, hidden),
            tf.Variable(tf.zeros([hidden])),
            glorot(hidden, actions),
            tf.Variable(tf.zeros([actions])),
        ]

    def __call__(self, observations):
        w1, b1, w2, b2 = self.variables
        return tf.matmul(tf.nn.tanh(tf.matmul(observations, w1) + b1), w2) + b2


def play(environment, policy, generator, seed):
    """Play an episode; return its observations, actions and rewards."""
    observation, _ = environment.reset(seed=seed)
    observations, actions, rewards = [], [], []
    done = False
    while not done:
        chances = tf.nn.softmax(policy(tf.constant(observation[np.newaxis])))[0].numpy()
        action = int(generator.random() < chances[1])
        observations.append(observation)
        actions.append(action)
        observation, reward, terminated, truncated, _ = environment.step(action)
        rewards.append(reward)
        done = terminated or truncated
    return np.array(observations), np.array(actions), rewards


def returns_to_go(rewards, discount=0.99):
    """Return the discounted sums of rewards, with mean 0 and deviation 1."""
    sums, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
        sums.append(total)
    sums = np.array(sums[::-1], np.float32)
    return (sums - sums.mean()) / (sums.std() + 1e-8)


def train(episodes, seed=0, rate=0.02):
    """Train an agent; return the length of each episode, and the agent."""
    tf.random.set_seed(seed)
    generator = np.random.default_rng(seed)
    environment = gymnasium.make("CartPole-v1")
    policy = Policy(4, 2)
    lengths = []
    for episode in range(episodes):
        observations, actions, rewards = play(environment, policy, generator, seed + episode)
        with tf.GradientTape() as tape:
            chances = tf.nn.log_softmax(policy(tf.constant(observations)))
            chosen = tf.reduce_sum(chances * tf.one_hot(actions, 2), axis=1)
            loss = -tf.reduce_mean(chosen * tf.constant(returns_to_go(rewards)))
        for variable, gradient in zip(
            policy.variables, tape.gradient(loss, policy.variables), strict=True
        ):
            variable.assign_sub(rate * gradient)
        lengths.append(len(rewards))
    return lengths, policy


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    lengths, policy = train(args.episodes, args.seed)
    seconds = time.perf_counter() - begin
    weights = b"".join(variable.numpy().tobytes() for variable in policy.variables)
    print("returns:", *lengths)
    print("weights:", hashlib.sha256(weights).hexdigest())
    print(f"seconds: {seconds:.2f}")


if __name__ == "__main__":
    main()
