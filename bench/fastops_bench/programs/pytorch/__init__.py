"""The same ten kinds of programs in PyTorch: the same sizes and numbers of steps."""
