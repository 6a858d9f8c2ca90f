# C++ helpers, each header beside the declarations of it for Cython.
