"""An actor-critic on CartPole, in one traced function that plays each episode and learns from it.

The environment is Python code, which the traced function calls by ``tf.numpy_function``.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from fastops_bench.programs.shared import CartPole, Times, options

GAMMA = 0.99
MAX_STEPS = 500

env = CartPole()
eps = np.finfo(np.float32).eps.item()
huber_loss = keras.losses.Huber(reduction="sum")


class ActorCritic(keras.Model):
    """A network with a common layer, and heads for actions and for values."""

    def __init__(self, num_actions, num_hidden_units):
        super().__init__()
        self.common = layers.Dense(num_hidden_units, activation="relu")
        self.actor = layers.Dense(num_actions)
        self.critic = layers.Dense(1)

    def call(self, inputs):
        x = self.common(inputs)
        return self.actor(x), self.critic(x)


def env_step(action):
    state, reward, terminated, truncated, _ = env.step(action)
    return state, np.array(reward, np.int32), np.array(terminated or truncated, np.int32)


def tf_env_step(action):
    return tf.numpy_function(env_step, [action], [tf.float32, tf.int32, tf.int32])


def run_episode(initial_state, model, max_steps):
    action_probs = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
    values = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
    rewards = tf.TensorArray(dtype=tf.int32, size=0, dynamic_size=True)
    initial_state_shape = initial_state.shape
    state = initial_state
    for t in tf.range(max_steps):
        state = tf.expand_dims(state, 0)
        action_logits_t, value = model(state)
        action = tf.random.categorical(action_logits_t, 1)[0, 0]
        action_probs_t = tf.nn.softmax(action_logits_t)
        values = values.write(t, tf.squeeze(value))
        action_probs = action_probs.write(t, action_probs_t[0, action])
        state, reward, done = tf_env_step(action)
        state.set_shape(initial_state_shape)
        rewards = rewards.write(t, reward)
        if tf.cast(done, tf.bool):
            break
    return action_probs.stack(), values.stack(), rewards.stack()


def get_expected_return(rewards, gamma, standardize=True):
    n = tf.shape(rewards)[0]
    returns = tf.TensorArray(dtype=tf.float32, size=n)
    rewards = tf.cast(rewards[::-1], dtype=tf.float32)
    discounted_sum = tf.constant(0.0)
    discounted_sum_shape = discounted_sum.shape
    for i in tf.range(n):
        reward = rewards[i]
        discounted_sum = reward + gamma * discounted_sum
        discounted_sum.set_shape(discounted_sum_shape)
        returns = returns.write(i, discounted_sum)
    returns = returns.stack()[::-1]
    if standardize:
        returns = (returns - tf.math.reduce_mean(returns)) / (tf.math.reduce_std(returns) + eps)
    return returns


def compute_loss(action_probs, values, returns):
    advantage = returns - values
    action_log_probs = tf.math.log(action_probs)
    actor_loss = -tf.math.reduce_sum(action_log_probs * tf.stop_gradient(advantage))
    return actor_loss + huber_loss(values, returns)


@tf.function
def train_step(initial_state, model, optimizer, gamma, max_steps_per_episode):
    with tf.GradientTape() as tape:
        action_probs, values, rewards = run_episode(initial_state, model, max_steps_per_episode)
        returns = get_expected_return(rewards, gamma)
        action_probs, values, returns = (
            tf.expand_dims(x, 1) for x in [action_probs, values, returns]
        )
        loss = compute_loss(action_probs, values, returns)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return tf.math.reduce_sum(rewards), loss


def main():
    args = options("An actor-critic in one traced function.", episodes=400)
    keras.utils.set_random_seed(args.seed)
    times = Times("step")
    model = ActorCritic(2, 64)
    optimizer = keras.optimizers.Adam(learning_rate=0.01)
    rewards, losses = [], []
    for episode in range(args.episodes):
        initial_state, _ = env.reset(seed=args.seed + episode)
        initial_state = tf.constant(initial_state, dtype=tf.float32)
        episode_reward, loss = train_step(initial_state, model, optimizer, GAMMA, MAX_STEPS)
        rewards.append(int(episode_reward))
        losses.append(float(loss))
        times.lap(rewards[-1])
    times.report(rewards + losses, model.get_weights())


if __name__ == "__main__":
    main()
