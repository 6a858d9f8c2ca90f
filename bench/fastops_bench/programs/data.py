"""The data of the programs: each program draws its own, and so does its like in PyTorch."""

import numpy as np

SIDE = 14
"""The height and width of the images."""

CLASSES, FEATURES = 3, 4
"""Of the rows of a classification."""

VOCABULARY, TOPICS, WINDOW = 1000, 20, 2
"""Of the corpus: the number of words and of topics, and how far words may be from each other."""

INSIDE, BORDER = 256, 64
"""How many points of a differential equation are inside, and on each border."""


def images(count, seed):
    """Draw images of soft ellipses, with values from 0 to 1: an array of shape (count, pixels)."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    center, width = rng.uniform(4, SIDE - 4, (2, count, 1, 1)), rng.uniform(1, 3, (2, count, 1, 1))
    drawn = np.exp(-(((x - center[0]) / width[0]) ** 2) - ((y - center[1]) / width[1]) ** 2)
    return drawn.reshape(count, -1).astype("float32")


def points(count, seed):
    """Draw points of the plane that are near to one of eight points of a circle."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * rng.integers(8, size=count) / 8
    drawn = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return (drawn + rng.normal(scale=0.05, size=drawn.shape)).astype("float32")


def labeled_rows(count, seed):
    """Draw rows of three classes, which overlap a little; return the features and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=count)
    centers = np.random.default_rng(1).normal(scale=1.5, size=(CLASSES, FEATURES))
    features = centers[labels] + rng.normal(size=(count, FEATURES))
    return features.astype("float32"), labels


def text(sentences, seed):
    """Write sentences of a small grammar."""
    rng = np.random.default_rng(seed)
    who = ["the queen", "a beggar", "my lord", "the old fool", "her brother", "no man"]
    does = ["loves", "curses", "follows", "forgets", "betrays", "mourns"]
    when = ["at dawn", "by night", "in the storm", "before the war", "with a smile"]
    chosen = (f"{rng.choice(who)} {rng.choice(does)} {rng.choice(who)}" for _ in range(sentences))
    return "".join(f"{sentence} {rng.choice(when)}.\n" for sentence in chosen)


def corpus(words, seed):
    """Draw a text of common words, and of words of topics that change every 50 words."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(rng.integers(TOPICS, size=words // 50 + 1), 50)[:words]
    own = (VOCABULARY - 100) // TOPICS
    common = np.minimum(rng.zipf(1.5, words) - 1, 99)
    rare = 100 + topics * own + rng.integers(own, size=words)
    return np.where(rng.random(words) < 0.4, common, rare)


def neighbors(words, count, rng):
    """Draw words of a text, and for each of them a word near to it."""
    positions = rng.integers(WINDOW, len(words) - WINDOW, size=count)
    offsets = rng.integers(1, WINDOW + 1, size=count) * rng.choice([-1, 1], size=count)
    return words[positions], words[positions + offsets]


def collocation(seed):
    """Draw times and positions inside, and points with values at the beginning and at both ends."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 1, (INSIDE, 1)).astype("float32")
    x = rng.uniform(-1, 1, (INSIDE, 1)).astype("float32")
    first = np.hstack([np.zeros((BORDER, 1)), rng.uniform(-1, 1, (BORDER, 1))]).astype("float32")
    ends = np.hstack([rng.uniform(0, 1, (BORDER, 1)), rng.choice([-1, 1], (BORDER, 1))])
    ends = ends.astype("float32")
    values = (-np.sin(np.pi * first[:, 1:2])).astype("float32")
    return t, x, [(first, values), (ends, np.zeros((BORDER, 1), "float32"))]


class ReplayBuffer:
    """The latest transitions of an agent."""

    def __init__(self, state_dim, action_dim, max_size=20000):
        self.max_size, self.ptr, self.size = max_size, 0, 0
        self.state = np.zeros((max_size, state_dim), np.float32)
        self.action = np.zeros((max_size, action_dim), np.float32)
        self.next_state = np.zeros((max_size, state_dim), np.float32)
        self.reward = np.zeros((max_size, 1), np.float32)
        self.not_done = np.zeros((max_size, 1), np.float32)

    def add(self, state, action, next_state, reward, done):
        self.state[self.ptr] = state
        self.action[self.ptr] = action
        self.next_state[self.ptr] = next_state
        self.reward[self.ptr] = reward
        self.not_done[self.ptr] = 1.0 - done
        self.ptr = (self.ptr + 1) % self.max_size
        self.size = min(self.size + 1, self.max_size)

    def sample(self, batch_size):
        """Draw transitions; return an array for each of their parts."""
        rows = np.random.randint(0, self.size, size=batch_size)
        columns = self.state, self.action, self.next_state, self.reward, self.not_done
        return tuple(column[rows] for column in columns)
