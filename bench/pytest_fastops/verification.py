"""Tests under `fastops.install` whose calls are verified. This module imports fastops."""

import pytest

import fastops
from fastops._install.verify.results import set_default
from fastops._shell.verification import parse


class Verification:
    """Installs fastops, fails each test in which a call differs, and reports the comparisons.

    A test fails even if it continues after the error, as tests that expect an error do.

    Parameters
    ----------
    mode : str
        A value of ``FASTOPS_VERIFY``.
    """

    def __init__(self, mode):
        self.mode, self.every = parse(mode)
        set_default(self.mode, self.every)  # also for tests that call install

    def pytest_sessionstart(self):
        if not fastops.is_installed():
            fastops.install()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self):
        before = len(fastops.verified().differences)
        result = yield
        differences = fastops.verified().differences[before:]
        if differences and self.mode == "raise":
            pytest.fail("\n".join(differences), pytrace=False)
        return result

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("fastops: calls that were verified")
        terminalreporter.write_line(str(fastops.verified()))
