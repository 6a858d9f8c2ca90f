Command exited with non-zero status 2
s 1.37 1.19
