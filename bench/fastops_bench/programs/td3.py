"""Twin delayed deep deterministic policy gradients (Fujimoto et al., 2018) on a pendulum.

The policy acts eagerly; the two parts of an update are traced methods.
"""

import keras
import numpy as np
import tensorflow as tf

from fastops_bench.programs.data import ReplayBuffer
from fastops_bench.programs.shared import Pendulum, Times, options

BATCH = 64


class Actor(keras.Model):
    def __init__(self, action_dim, max_action):
        super().__init__()
        self.l1 = keras.layers.Dense(64, activation=tf.nn.relu)
        self.l2 = keras.layers.Dense(64, activation=tf.nn.relu)
        self.l3 = keras.layers.Dense(action_dim, activation=tf.nn.tanh)
        self.max_action = max_action

    def call(self, state):
        return self.max_action * self.l3(self.l2(self.l1(state)))


class Critic(keras.Model):
    def __init__(self):
        super().__init__()
        self.l1 = keras.layers.Dense(64, activation=tf.nn.relu)
        self.l2 = keras.layers.Dense(64, activation=tf.nn.relu)
        self.l3 = keras.layers.Dense(1)
        self.l4 = keras.layers.Dense(64, activation=tf.nn.relu)
        self.l5 = keras.layers.Dense(64, activation=tf.nn.relu)
        self.l6 = keras.layers.Dense(1)

    def call(self, state, action):
        both = tf.concat([state, action], axis=1)
        return self.l3(self.l2(self.l1(both))), self.l6(self.l5(self.l4(both)))


class TD3:
    def __init__(
        self,
        state_dim,
        action_dim,
        max_action,
        discount=0.99,
        tau=0.005,
        policy_noise=0.2,
        noise_clip=0.5,
        policy_freq=2,
    ):
        self.actor, self.actor_target = (Actor(action_dim, max_action) for _ in range(2))
        self.critic, self.critic_target = Critic(), Critic()
        state, action = tf.zeros((1, state_dim)), tf.zeros((1, action_dim))
        for model, target, inputs in (
            (self.actor, self.actor_target, (state,)),
            (self.critic, self.critic_target, (state, action)),
        ):
            model(*inputs)
            target(*inputs)
            target.set_weights(model.get_weights())
        self.actor_optimizer = keras.optimizers.Adam(1e-3)
        self.critic_optimizer = keras.optimizers.Adam(1e-3)
        self.max_action = max_action
        self.discount = discount
        self.tau = tau
        self.policy_noise = policy_noise * max_action
        self.noise_clip = noise_clip * max_action
        self.policy_freq = policy_freq
        self.total_it = 0

    def select_action(self, state):
        return self.actor(tf.expand_dims(state, 0))[0].numpy()

    @tf.function
    def train_critic(self, state, action, next_state, reward, not_done):
        noise = tf.random.normal(tf.shape(action), stddev=self.policy_noise)
        noise = tf.clip_by_value(noise, -self.noise_clip, self.noise_clip)
        next_action = tf.clip_by_value(
            self.actor_target(next_state) + noise, -self.max_action, self.max_action
        )
        target_q1, target_q2 = self.critic_target(next_state, next_action)
        target_q = reward + not_done * self.discount * tf.minimum(target_q1, target_q2)
        with tf.GradientTape() as tape:
            q1, q2 = self.critic(state, action)
            loss = tf.reduce_mean(tf.square(q1 - target_q)) + tf.reduce_mean(
                tf.square(q2 - target_q)
            )
        grads = tape.gradient(loss, self.critic.trainable_variables)
        self.critic_optimizer.apply_gradients(zip(grads, self.critic.trainable_variables))
        return loss

    @tf.function
    def train_actor(self, state):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(self.critic(state, self.actor(state))[0])
        grads = tape.gradient(loss, self.actor.trainable_variables)
        self.actor_optimizer.apply_gradients(zip(grads, self.actor.trainable_variables))
        for model, target in ((self.critic, self.critic_target), (self.actor, self.actor_target)):
            for param, target_param in zip(model.variables, target.variables):
                target_param.assign(self.tau * param + (1 - self.tau) * target_param)
        return loss

    def train(self, replay_buffer, batch_size=BATCH):
        self.total_it += 1
        batch = map(tf.convert_to_tensor, replay_buffer.sample(batch_size))
        state, action, next_state, reward, not_done = batch
        loss = self.train_critic(state, action, next_state, reward, not_done)
        if self.total_it % self.policy_freq == 0:
            self.train_actor(state)
        return loss


def main():
    args = options("TD3 on a pendulum.", steps=6000, start=500, lap=100)
    keras.utils.set_random_seed(args.seed)
    times = Times("step")
    env = Pendulum()
    policy = TD3(3, 1, env.TORQUE)
    replay_buffer = ReplayBuffer(3, 1)
    state, _ = env.reset(seed=args.seed)
    episode_reward, returns, losses = 0.0, [], []
    for t in range(1, args.steps + 1):
        if t < args.start:
            action = np.random.uniform(-env.TORQUE, env.TORQUE, 1).astype(np.float32)
        else:
            action = policy.select_action(state)
            action = action + np.random.normal(0, 0.1 * env.TORQUE, size=1).astype(np.float32)
            action = action.clip(-env.TORQUE, env.TORQUE)
        next_state, reward, terminated, truncated, _ = env.step(action)
        replay_buffer.add(state, action, next_state, reward, float(terminated))
        state = next_state
        episode_reward += reward
        if t >= args.start:
            losses.append(float(policy.train(replay_buffer)))
        if terminated or truncated:
            returns.append(episode_reward)
            episode_reward = 0.0
            state, _ = env.reset()
        if t % args.lap == 0:
            times.lap(args.lap)
    times.report(returns + losses, policy.actor.get_weights())


if __name__ == "__main__":
    main()
