"""Calls, a module for each namespace or class.

`TEXT` has a call a line, of the form that `recipes.of` describes. What the text cannot say in
one expression, its module defines beside it.
"""
