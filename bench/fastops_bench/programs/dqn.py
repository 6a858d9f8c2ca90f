"""A deep Q network (Mnih et al., 2015) on CartPole, with replay and a target network."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from fastops_bench.programs.shared import CartPole, Times, options

GAMMA = 0.99
BATCH = 32
EPSILON_MIN, EPSILON_MAX, EPSILON_FRAMES = 0.1, 1.0, 1000
UPDATE_AFTER_ACTIONS = 4
UPDATE_TARGET_NETWORK = 200
MEMORY = 10000


def create_q_model(actions=2):
    return keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(64, activation="relu"),
            layers.Dense(64, activation="relu"),
            layers.Dense(actions, activation="linear"),
        ]
    )


def main():
    args = options("DQN on CartPole.", frames=2000, lap=100)
    keras.utils.set_random_seed(args.seed)
    times = Times("frame")
    env = CartPole()
    model, model_target = create_q_model(), create_q_model()
    model_target.set_weights(model.get_weights())
    optimizer = keras.optimizers.Adam(learning_rate=1e-3, clipnorm=1.0)
    loss_function = keras.losses.Huber()

    action_history, state_history, state_next_history = [], [], []
    rewards_history, done_history = [], []
    episode_rewards, losses = [], []
    epsilon, episode_reward = EPSILON_MAX, 0.0
    state, _ = env.reset(seed=args.seed)

    for frame_count in range(1, args.frames + 1):
        if epsilon > np.random.rand():
            action = np.random.choice(2)
        else:
            state_tensor = tf.convert_to_tensor(state)
            state_tensor = tf.expand_dims(state_tensor, 0)
            action_values = model(state_tensor, training=False)
            action = tf.argmax(action_values[0]).numpy()
        epsilon = max(EPSILON_MIN, epsilon - (EPSILON_MAX - EPSILON_MIN) / EPSILON_FRAMES)

        state_next, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        episode_reward += reward
        action_history.append(action)
        state_history.append(state)
        state_next_history.append(state_next)
        done_history.append(float(terminated))
        rewards_history.append(reward)
        state = state_next

        if frame_count % UPDATE_AFTER_ACTIONS == 0 and len(done_history) > BATCH:
            indices = np.random.choice(range(len(done_history)), size=BATCH)
            state_sample = np.array([state_history[i] for i in indices])
            state_next_sample = np.array([state_next_history[i] for i in indices])
            rewards_sample = np.array([rewards_history[i] for i in indices], np.float32)
            action_sample = [action_history[i] for i in indices]
            done_sample = tf.convert_to_tensor([done_history[i] for i in indices])

            future_rewards = model_target.predict(state_next_sample, verbose=0)
            updated_q_values = rewards_sample + GAMMA * tf.reduce_max(future_rewards, axis=1) * (
                1 - done_sample
            )
            masks = tf.one_hot(action_sample, 2)
            with tf.GradientTape() as tape:
                q_values = model(state_sample)
                q_action = tf.reduce_sum(tf.multiply(q_values, masks), axis=1)
                loss = loss_function(updated_q_values, q_action)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            losses.append(float(loss))

        if frame_count % UPDATE_TARGET_NETWORK == 0:
            model_target.set_weights(model.get_weights())

        if len(rewards_history) > MEMORY:
            for history in (
                *(rewards_history, state_history, state_next_history, action_history),
                done_history,
            ):
                del history[:1]
        if done:
            episode_rewards.append(episode_reward)
            episode_reward = 0.0
            state, _ = env.reset()
        if frame_count % args.lap == 0:
            times.lap(args.lap)
    times.report(episode_rewards + losses, model.get_weights())


if __name__ == "__main__":
    main()
