"""What replaces what in Keras: the Python above its ops."""
