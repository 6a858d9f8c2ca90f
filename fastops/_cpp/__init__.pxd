# C++ helpers. Each header has its declarations for Cython in the .pxd file of the same name.
