Command exited with non-zero status 2
i 1.33 1.22
