"""Programs as users write them: ten kinds, each in TensorFlow, and its like in PyTorch.

They are written from published descriptions of algorithms, in the style of TensorFlow's and Keras's
guides, and know nothing of fastops. ``python -m fastops_bench.programs.ppo`` runs one of them,
``python -m fastops -m fastops_bench.programs.ppo`` runs it with fastops, and ``pytorch`` has the
similar programs. Each makes its data itself. `shared` has what all of them need.
"""

PROGRAMS = {
    "PPO": ("ppo", [], ["--iterations=2", "--steps=128"]),
    "DQN": ("dqn", [], ["--frames=120", "--lap=20"]),
    "TD3": ("td3", [], ["--steps=300", "--start=100", "--lap=50"]),
    "VAE": ("vae", [], ["--epochs=2", "--images=1024"]),
    "WGAN-GP": ("wgan_gp", [], ["--steps=8"]),
    "physics-informed network": ("physics", [], ["--steps=40"]),
    "character RNN": ("char_rnn", [], ["--epochs=2", "--chars=20"]),
    "word vectors": ("word_vectors", [], ["--steps=150"]),
    "custom training": ("custom_training", [], ["--epochs=4"]),
    "custom training, traced": (
        *("custom_training", ["--traced=1", "--epochs=300"], ["--traced=1", "--epochs=8"]),
    ),
    "actor-critic, traced": ("traced_actor_critic", [], ["--episodes=30"]),
}
"""By label, a module, its options, and its options in a quick run. No options mean the defaults."""
