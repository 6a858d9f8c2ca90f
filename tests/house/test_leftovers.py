"""A run of the tests leaves no more files behind than TensorFlow does."""

import leftovers
import pytest


@pytest.mark.parametrize(
    ("compiled", "kept"),
    [
        (["__autograph_generated_file1.cpython-311.pyc"], True),
        (["__autograph_generated_file1.cpython-311.pyc", "ours.cpython-311.pyc"], False),
    ],
)
def test_only_bytecode_of_autograph_may_be_left(tmp_path, compiled, kept):
    folder = tmp_path / "__pycache__"
    folder.mkdir()
    for name in compiled:
        (folder / name).touch()
    assert leftovers.is_kept(folder) is kept
    assert leftovers.is_kept(folder / compiled[-1]) is kept
    assert not leftovers.is_kept(tmp_path)
