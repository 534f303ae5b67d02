"""The file of a backup: whole or refused, and nothing in it leads out of the home."""

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wakeful.contracts.errors import InvalidRequest
from wakeful.service.backups.archive import NotABackup, check_archive, new_archive, unpack
from wakeful.service.backups.contents import HomeContents
from wakeful.service.backups.restore import read_backup, restoring

CONTENTS = HomeContents("wakeful.db")
Edit = Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with new_archive(path, {"database": "wakeful.db", "created_at": 0}) as writer:
        for name, data in files.items():
            source = path.with_name("source")
            source.write_bytes(data)
            with source.open("rb") as file:
                writer.add(name, file)
        writer.end({"secrets": []})
    return path


def edited(path: Path, edit: Edit) -> Path:
    """The same archive with other members, well formed."""
    with tarfile.open(path) as tar:
        members = [(info, file.read() if (file := tar.extractfile(info)) is not None else b"") for info in tar]
    edit(members)
    with gzip.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return path


def planted(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"x") -> Edit:
    def edit(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, link
        info.size = len(data) if kind == tarfile.REGTYPE else 0
        members.insert(1, (info, data))

    return edit


HOSTILE = {
    "a path that leads up": planted("home/agents/../../escaped"),
    "an absolute path": planted("/var/escaped"),
    "a path beside the home": planted("escaped"),
    "a symbolic link": planted("home/agents/link", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": planted("home/agents/link", tarfile.LNKTYPE, "/etc/passwd"),
    "a device": planted("home/agents/null", tarfile.CHRTYPE),
    "a pipe": planted("home/agents/pipe", tarfile.FIFOTYPE),
    "a folder": planted("home/agents/folder", tarfile.DIRTYPE),
    "secrets": planted("home/secrets.env"),
    "the secret of the home": planted("home/secret"),
    "tokens": planted("home/tokens.json"),
    "the state of the home": planted("home/home-state.json"),
    "files of a process": planted("home/run/daemon.json"),
    "a file beside the database": planted("home/wakeful.db-anchor"),
    "a name twice": planted("home/wakeful.db"),
    "a file that the manifest does not know": planted("home/agents/more.yaml"),
    "something behind the end": lambda members: members.append(members[1]),
    "no end": lambda members: members.__delitem__(-1),
    "other bytes": lambda members: members.__setitem__(1, (members[1][0], bytes(len(members[1][1])))),
    "a store with the name of secrets": lambda members: members.__setitem__(0, _header("secrets.env")),
    "a store elsewhere": lambda members: members.__setitem__(0, _header("../wakeful.db")),
}


def _header(database: str) -> tuple[tarfile.TarInfo, bytes]:
    data = json.dumps({"format": "wakeful-backup", "version": 1, "database": database}).encode()
    info = tarfile.TarInfo("wakeful-backup.json")
    info.size = len(data)
    return info, data


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused_before_anything_is_written(tmp_path: Path, what: str) -> None:
    path = edited(
        archive(tmp_path / "b.tar.gz", {"wakeful.db": b"database", "agents/a.yaml": b"name: a"}), HOSTILE[what]
    )
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((NotABackup, InvalidRequest)):
        read_backup(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_inversion_the_same_archive_without_anything_planted_is_unpacked(tmp_path: Path) -> None:
    path = edited(archive(tmp_path / "b.tar.gz", {"wakeful.db": b"database", "agents/a.yaml": b"name: a"}), len)
    record, contents = read_backup(path)
    home = tmp_path / "home"
    with restoring(home, path, record, contents) as store:
        assert store.read_bytes() == b"database"
    assert (home / "agents" / "a.yaml").read_text() == "name: a"
    assert not (home / "home-state.json").exists()


def test_inversion_without_its_rules_a_backup_would_bring_secrets_of_its_own(tmp_path: Path) -> None:
    """The names are held back by the check alone: the same loop writes whatever name it is given."""
    path = archive(tmp_path / "b.tar.gz", {"wakeful.db": b"database", "secrets.env": b"KEY=planted"})
    record = check_archive(path, lambda _: lambda _: True)
    unpack(path, tmp_path / "home", record, lambda _: True)
    assert (tmp_path / "home" / "secrets.env").read_text() == "KEY=planted"
    with pytest.raises(NotABackup, match="does not belong"):
        read_backup(path)


@pytest.mark.parametrize("kept", range(0, 100, 7))
def test_a_file_that_was_cut_off_anywhere_is_refused(tmp_path: Path, kept: int) -> None:
    path = archive(tmp_path / "b.tar.gz", {"wakeful.db": bytes(range(256)) * 400, "agents/a.yaml": b"name: a"})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * kept // 100])
    with pytest.raises(NotABackup, match=r"not a backup|damaged or was cut off|not whole"):
        read_backup(path)


def test_a_backup_is_never_written_over_another_file(tmp_path: Path) -> None:
    there = tmp_path / "b.tar.gz"
    there.write_text("mine")
    with pytest.raises(InvalidRequest, match="is there already"):
        archive(there, {"wakeful.db": b""})
    assert there.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar.gz"]


def test_a_name_of_a_version_to_come_says_who_can_read_it(tmp_path: Path) -> None:
    path = archive(tmp_path / "b.tar.gz", {"wakeful.db": b"database"})

    def newer(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        data = json.dumps({"format": "wakeful-backup", "version": 9}).encode()
        members[0][0].size = len(data)
        members[0] = (members[0][0], data)

    with pytest.raises(NotABackup, match="version 9"):
        read_backup(edited(path, newer))
