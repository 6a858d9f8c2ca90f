"""Graphs that programs build, load and run themselves: what is behind `fastops.graph`.

Sessions, the variables that live in them, saved models. Their plans are those of `_plans`.
"""
