"""Upload a prepared corpus to an object store, and download it to each machine that trains."""

from collections.abc import Callable
from pathlib import Path

from glassformer.bundle import TOKENIZER
from glassformer.corpus.shards import ARRAYS
from glassformer.errors import CheckpointError
from glassformer.jobs.prepared.folder import KEPT_FILE
from glassformer.jobs.prepared.manifest import MANIFEST, Manifest
from glassformer.system.files import hash_of_file, hash_of_folder, remove, write_safely
from glassformer.system.storage import RemoteStorage, using

__all__ = ["download", "names_at", "upload"]

OnBytes = Callable[[int, int], object]


def names_at(storage: RemoteStorage) -> set[str]:
    """Return the names of the files in a storage.

    Raises:
        CheckpointError: the storage cannot be read.
    """
    with using(storage.place):
        return storage.names("")


def upload(storage: RemoteStorage, folder: Path, on_progress: OnBytes = lambda *_: None) -> None:
    """Upload a prepared folder, with the manifest last, so that no reader sees an incomplete corpus.

    Raises:
        CheckpointError: a file cannot be uploaded.
    """
    own = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    # puts the manifest last and keeps the order of the other files
    paths = sorted(own, key=lambda path: path.name == MANIFEST)
    total, done = sum(path.stat().st_size for path in paths), 0
    for path in paths:
        with (
            using(storage.place),
            storage.writing(str(path.relative_to(folder))) as file,
            path.open("rb") as content,
        ):
            while block := content.read(1 << 20):
                file.write(block)
        done += path.stat().st_size
        on_progress(done, total)


def download(storage: RemoteStorage, folder: Path, on_progress: OnBytes = lambda *_: None) -> None:
    """Download a prepared corpus from a storage into a folder, but not the file that marks the kept pairs.

    Files that the folder already has, with the hashes in the manifest, are not downloaded. The caller locks the folder.

    Raises:
        CheckpointError: a file is missing, or differs from the file that the manifest lists.
    """
    _fetch(storage, MANIFEST, folder, None)
    manifest = Manifest.load(folder)
    if manifest is None:
        raise CheckpointError(f"{storage.place}/{MANIFEST} is damaged; upload it again, or prepare the corpus again")
    if manifest.tokenizer != hash_of_folder(folder / TOKENIZER):
        with using(storage.place):
            names = storage.names(TOKENIZER)
        for path in (folder / TOKENIZER).glob("*"):
            remove(path)
        for name in names:
            _fetch(storage, f"{TOKENIZER}/{name}", folder, None)
        if manifest.tokenizer != hash_of_folder(folder / TOKENIZER):
            raise CheckpointError(
                f"{storage.place}/{TOKENIZER} is not the tokenizer that the corpus was prepared with; upload the "
                "tokenizer again, or prepare the corpus again"
            )
    wanted = {name: hash for name, hash in manifest.hashes.items() if name != KEPT_FILE}
    sizes = dict.fromkeys(wanted, 0)
    for shard in manifest.shards:
        for kind, size, hash in zip(ARRAYS, shard.sizes, shard.hashes, strict=True):
            wanted[f"{shard.name}.{kind}.npy"], sizes[f"{shard.name}.{kind}.npy"] = hash, size
    done, total = 0, sum(sizes.values())
    for name, hash in wanted.items():
        if not (folder / name).exists() or hash_of_file(folder / name) != hash:
            _fetch(storage, name, folder, hash)
        done += sizes[name]
        on_progress(done, total)


def _fetch(storage: RemoteStorage, name: str, folder: Path, hash: str | None) -> None:
    path, where = folder / name, f"{storage.place.rstrip('/')}/{name}"
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(temporary: Path) -> None:
        with using(where):
            storage.download(name, temporary)
        if hash and hash_of_file(temporary) != hash:
            raise CheckpointError(
                f"{where} is not the file that was prepared, or is cut short; upload the file again, or prepare the "
                "corpus again"
            )

    write_safely(path, write)
