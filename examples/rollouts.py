"""CartPole actors and a learner on Ray. The actors call their policy eagerly.

An actor is a process with an environment and a copy of the policy. It plays one episode per round.
The learner makes one step of REINFORCE with the episodes of a round, in the order of the actors,
and sends its weights. Returns and weights depend only on the seed and the number of actors. They do
not depend on which actor finishes first, nor on ``--stock``, which uses TensorFlow without fastops.
"""

import argparse
import hashlib
import os
import time

import numpy as np

HIDDEN = 32
RATE = 0.3
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def begin_process(stock):
    """Install fastops in this process, since workers do not inherit that from the main program."""
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    if not stock:
        import fastops

        fastops.install()


class Policy:
    """Two dense layers, from observations to the logits of the actions."""

    def __init__(self, weights):
        import tensorflow as tf

        self.tf = tf
        self.variables = [tf.Variable(weight) for weight in weights]

    def __call__(self, observations):
        tf, (w1, b1, w2, b2) = self.tf, self.variables
        return tf.matmul(tf.nn.tanh(tf.matmul(observations, w1) + b1), w2) + b2

    def get(self):
        return [variable.numpy() for variable in self.variables]

    def set(self, weights):
        for variable, weight in zip(self.variables, weights, strict=True):
            variable.assign(weight)


def initial(seed):
    """Return the initial weights."""
    generator = np.random.default_rng(seed)
    weights = []
    for rows, columns in ((4, HIDDEN), (HIDDEN, 2)):
        limit = (6 / (rows + columns)) ** 0.5
        weights += [generator.uniform(-limit, limit, (rows, columns)), np.zeros(columns)]
    return [weight.astype(np.float32) for weight in weights]


class Actor:
    """Plays episodes with the last weights that it was sent."""

    def __init__(self, number, seed, stock):
        begin_process(stock)
        import gymnasium
        import tensorflow as tf

        self.tf, self.environment = tf, gymnasium.make("CartPole-v1")
        self.policy = Policy(initial(seed))
        self.generator = np.random.default_rng([seed, number])

    def play(self, weights):
        """Play an episode; return observations, actions, rewards, and its seconds."""
        self.policy.set(weights)
        begin = time.perf_counter()
        observation, _ = self.environment.reset(seed=int(self.generator.integers(1 << 31)))
        observations, actions, rewards, done = [], [], [], False
        while not done:
            chances = self.tf.nn.softmax(self.policy(self.tf.constant(observation[np.newaxis])))
            action = int(self.generator.random() < float(chances[0, 1]))
            observations.append(observation)
            actions.append(action)
            observation, reward, terminated, truncated, _ = self.environment.step(action)
            rewards.append(reward)
            done = terminated or truncated
        seconds = time.perf_counter() - begin
        return np.array(observations), np.array(actions), rewards, seconds


def returns_to_go(rewards, discount=0.99):
    """Return the discounted sums of rewards, with mean 0 and deviation 1."""
    sums, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
        sums.append(total)
    sums = np.array(sums[::-1], np.float32)
    return (sums - sums.mean()) / (sums.std() + 1e-8)


class Learner:
    """Has the weights, and updates them once per round."""

    def __init__(self, seed, stock):
        begin_process(stock)
        import tensorflow as tf

        self.tf, self.policy = tf, Policy(initial(seed))

    def learn(self, episodes):
        """Make a training step with episodes; return the new weights."""
        tf, variables = self.tf, self.policy.variables
        observations = np.concatenate([observed for observed, *_ in episodes])
        actions = np.concatenate([acted for _, acted, *_ in episodes])
        returns = np.concatenate([returns_to_go(rewards) for _, _, rewards, _ in episodes])
        with tf.GradientTape() as tape:
            chances = tf.nn.log_softmax(self.policy(tf.constant(observations)))
            chosen = tf.reduce_sum(chances * tf.one_hot(actions, 2), axis=1)
            loss = -tf.reduce_mean(chosen * tf.constant(returns))
        slopes = tape.gradient(loss, variables)
        for variable, slope in zip(variables, slopes, strict=True):
            variable.assign_sub(RATE * slope)
        return self.policy.get()


def train(actors, rounds, seed, stock):
    """Train on a running cluster; return episode lengths, weights, and steps and seconds."""
    import ray

    learner = Learner(seed, stock)
    remote = ray.remote(num_cpus=1, runtime_env={"env_vars": ONE_THREAD})(Actor)
    playing = [remote.remote(number, seed, stock) for number in range(actors)]
    lengths, steps, seconds = [], np.zeros(actors), np.zeros(actors)
    weights = learner.policy.get()
    for _ in range(rounds):
        sent = ray.put(weights)
        # Results are in the order of the actors, not in the order in which they finish.
        episodes = ray.get([actor.play.remote(sent) for actor in playing])
        weights = learner.learn(episodes)
        played = [len(rewards) for _, _, rewards, _ in episodes]
        lengths.append(played)
        if len(lengths) > 1 or rounds == 1:  # the first round prepares kernels
            steps += played
            seconds += [took for *_, took in episodes]
    for actor in playing:
        ray.kill(actor)
    return lengths, weights, steps, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stock", action="store_true", help="use TensorFlow without fastops")
    parser.add_argument("--address", help='the address of a cluster, or "auto"; default: start one')
    args = parser.parse_args()
    os.environ.update(ONE_THREAD | {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"})
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if args.address:
        ray.init(address=args.address, log_to_driver=False)
    else:
        ray.init(num_cpus=args.actors, include_dashboard=False, log_to_driver=False)
    try:
        begin = time.perf_counter()
        lengths, weights, steps, seconds = train(args.actors, args.rounds, args.seed, args.stock)
        taken = time.perf_counter() - begin
    finally:
        ray.shutdown()
    print("returns:", *(",".join(map(str, played)) for played in lengths))
    print("weights:", hashlib.sha256(b"".join(map(np.ndarray.tobytes, weights))).hexdigest())
    each = " ".join(f"{rate:.0f}" for rate in steps / seconds)
    print(f"seconds: {taken:.2f}, env steps a second of each actor: {each}")


if __name__ == "__main__":
    main()
