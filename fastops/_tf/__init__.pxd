# Declarations for Cython of what is used of TensorFlow's headers.
