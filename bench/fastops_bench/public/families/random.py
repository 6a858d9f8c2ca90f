"""`tf.random`, and the methods of `tf.random.Generator`."""

import tensorflow as tf


def beside(world):
    return {"classes": tf.constant([[1], [2]], tf.int64)}


TEXT = """
tf.random.all_candidate_sampler(classes, 1, 8, True)
tf.random.categorical(m, 2)
tf.random.create_rng_state(7, "philox")
tf.random.fixed_unigram_candidate_sampler(classes, 1, 3, True, 8, unigrams=[1.0] * 8)
tf.random.fold_in(seed, 3)
tf.random.gamma([4], 0.5)
tf.random.learned_unigram_candidate_sampler(classes, 1, 3, True, 8)  # later calls take longer
tf.random.log_uniform_candidate_sampler(classes, 1, 3, True, 8)
tf.random.normal([4])
tf.random.poisson([4], 2.0)
tf.random.shuffle(x)
tf.random.split(seed)
tf.random.stateless_binomial([4], seed, 5.0, 0.3)
tf.random.stateless_categorical(m, 2, seed)
tf.random.stateless_gamma([4], seed, 0.5)
tf.random.stateless_normal([4], seed)
tf.random.stateless_parameterized_truncated_normal([4], seed)
tf.random.stateless_poisson([4], seed, 2.0)
tf.random.stateless_truncated_normal([4], seed)
tf.random.stateless_uniform([4], seed)
tf.random.truncated_normal([4])
tf.random.uniform([4])
tf.random.uniform_candidate_sampler(classes, 1, 3, True, 8)
tf.random.experimental.index_shuffle(3, [1, 2], 10)
tf.random.experimental.stateless_shuffle(x, seed)
tf.random.Generator:
    binomial: g.binomial([4], 5.0, 0.3)
    from_key_counter: tf.random.Generator.from_key_counter(1, [0, 0], "philox").state
    from_non_deterministic_state: tf.random.Generator.from_non_deterministic_state().algorithm
    from_seed: tf.random.Generator.from_seed(7).state
    from_state: tf.random.Generator.from_state([1, 0, 0], "philox").state
    make_seeds: g.make_seeds(2)
    normal: g.normal([4])
    reset: g.reset([1, 0, 0])
    reset_from_key_counter: g.reset_from_key_counter(1, [0, 0])
    reset_from_seed: g.reset_from_seed(7)
    skip: g.skip(3)
    split: [each.state for each in g.split(2)]
    truncated_normal: g.truncated_normal([4])
    uniform: g.uniform([4])
    uniform_full_int: g.uniform_full_int([4])
"""
