"""The table of what is restated is the one that its tool would write."""

from tools import restated


def test_the_table_has_the_running_versions(capsys):
    assert restated.main(["--check"]) == 0, capsys.readouterr().out
