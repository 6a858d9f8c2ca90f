"""The table of digests of upstream code is up to date."""

from tools import restated


def test_a_folder_without_packages_is_an_error(tmp_path, capsys):
    assert restated.main(["--diff", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_the_table_has_the_running_versions(capsys):
    assert restated.main(["--check"]) == 0, capsys.readouterr().out
