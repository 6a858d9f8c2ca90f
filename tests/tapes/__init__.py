"""Programs with tapes that are drawn at random, and compared with TensorFlow bit by bit."""
