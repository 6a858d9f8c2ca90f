"""Calls, in a module for each namespace or class.

`TEXT` has a call in each line, in the form that `recipes.of` describes. If a call needs more than
one expression, its module defines functions for it.
"""
