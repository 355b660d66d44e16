"""Hashes of files and folders."""

from glassformer.system.files import hash_of_file, hash_of_folder


def test_hashes_equal_those_in_earlier_manifests(tmp_path):
    (tmp_path / "source.json").write_bytes(b'{"kind": "words"}\n')
    (tmp_path / "b.model").write_bytes(bytes(range(256)))
    assert hash_of_file(tmp_path / "b.model") == "f1f8a93f50849ac39408a4433b952d71"
    assert hash_of_folder(tmp_path) == "61dc011f06346fc516a6e81918f6656d"


def test_a_folder_inside_does_not_count(tmp_path):
    (tmp_path / "source.json").write_bytes(b"{}")
    before = hash_of_folder(tmp_path)
    (tmp_path / ".ipynb_checkpoints").mkdir()  # Jupyter creates it next to a notebook that was opened
    assert hash_of_folder(tmp_path) == before
