"""Proximal policy optimization (Schulman et al., 2017) on CartPole, in eager mode."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from fastops_bench.programs.shared import CartPole, Times, options

GAMMA, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01
EPOCHS, BATCH = 4, 64
LEARNING_RATE = 2.5e-3


class ActorCritic(keras.Model):
    def __init__(self, actions):
        super().__init__()
        self.actor = keras.Sequential(
            [
                layers.Dense(64, activation=tf.nn.tanh),
                layers.Dense(64, activation=tf.nn.tanh),
                layers.Dense(actions),
            ]
        )
        self.critic = keras.Sequential(
            [
                layers.Dense(64, activation=tf.nn.tanh),
                layers.Dense(64, activation=tf.nn.tanh),
                layers.Dense(1),
            ]
        )

    def call(self, observations):
        return self.actor(observations), tf.squeeze(self.critic(observations), axis=-1)


def log_probability(logits, actions):
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)


class Rollout:
    """The steps between two updates, and their advantages (Schulman et al., 2016)."""

    def __init__(self):
        self.observations, self.actions, self.log_probs = [], [], []
        self.rewards, self.values, self.dones = [], [], []

    def store(self, observation, action, log_prob, reward, value, done):
        self.observations.append(observation)
        self.actions.append(action)
        self.log_probs.append(log_prob)
        self.rewards.append(reward)
        self.values.append(value)
        self.dones.append(done)

    def finish(self, last_value):
        advantages = np.zeros(len(self.rewards), np.float32)
        running, following = 0.0, last_value
        for t in reversed(range(len(self.rewards))):
            alive = 1.0 - self.dones[t]
            delta = self.rewards[t] + GAMMA * following * alive - self.values[t]
            running = delta + GAMMA * LAMBDA * alive * running
            advantages[t] = running
            following = self.values[t]
        returns = advantages + np.array(self.values, np.float32)
        return (
            np.array(self.observations, np.float32),
            np.array(self.actions, np.int32),
            np.array(self.log_probs, np.float32),
            advantages,
            returns,
        )


def update(model, optimizer, observations, actions, old_log_probs, advantages, returns):
    advantages = (advantages - tf.reduce_mean(advantages)) / (tf.math.reduce_std(advantages) + 1e-8)
    with tf.GradientTape() as tape:
        logits, values = model(observations)
        ratio = tf.exp(log_probability(logits, actions) - old_log_probs)
        clipped = tf.clip_by_value(ratio, 1 - CLIP, 1 + CLIP)
        policy_loss = -tf.reduce_mean(tf.minimum(ratio * advantages, clipped * advantages))
        value_loss = 0.5 * tf.reduce_mean(tf.square(returns - values))
        entropy = -tf.reduce_mean(
            tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), axis=1)
        )
        loss = policy_loss + 0.5 * value_loss - ENTROPY * entropy
    grads = tape.gradient(loss, model.trainable_variables)
    grads, _ = tf.clip_by_global_norm(grads, 0.5)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def main():
    args = options("PPO on CartPole.", iterations=20, steps=512)
    keras.utils.set_random_seed(args.seed)
    times = Times("step")
    env = CartPole()
    model = ActorCritic(2)
    optimizer = keras.optimizers.Adam(LEARNING_RATE, epsilon=1e-5)
    observation, _ = env.reset(seed=args.seed)
    length, lengths, losses = 0, [], []
    for iteration in range(args.iterations):
        optimizer.learning_rate = LEARNING_RATE * (1.0 - iteration / args.iterations)
        rollout = Rollout()
        for _ in range(args.steps):
            logits, value = model(observation[np.newaxis])
            action = tf.random.categorical(logits, 1)[0]
            log_prob = log_probability(logits, action)
            action = int(action[0])
            after, reward, terminated, truncated, _ = env.step(action)
            done = terminated or truncated
            rollout.store(observation, action, float(log_prob[0]), reward, float(value[0]), done)
            observation = after
            length += 1
            if done:
                lengths.append(length)
                length = 0
                observation, _ = env.reset()
        _, last_value = model(observation[np.newaxis])
        data = rollout.finish(float(last_value[0]))
        for _ in range(EPOCHS):
            order = np.random.permutation(args.steps)
            for start in range(0, args.steps, BATCH):
                rows = order[start : start + BATCH]
                batch = [tf.convert_to_tensor(array[rows]) for array in data]
                losses.append(float(update(model, optimizer, *batch)))
        times.lap(args.steps)
    times.report(lengths + losses, model.get_weights())


if __name__ == "__main__":
    main()
