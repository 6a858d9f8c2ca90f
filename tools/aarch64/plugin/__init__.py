"""Plugins of pytest. This folder is on the path of the emulated tests."""
