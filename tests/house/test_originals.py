"""The table of digests of upstream code is up to date."""

from tools import restated


def test_the_table_has_the_running_versions(capsys):
    assert restated.main(["--check"]) == 0, capsys.readouterr().out
