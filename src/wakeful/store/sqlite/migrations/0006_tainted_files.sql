-- Files that hold what a conversation with untrusted input wrote: a view of `files.tainted`, rebuilt with the others.

CREATE TABLE tainted_files (
    agent       INTEGER NOT NULL,
    workspace   TEXT NOT NULL,
    path        TEXT NOT NULL,
    since       INTEGER NOT NULL,
    digest      TEXT NOT NULL,
    cause       TEXT NOT NULL,
    turn_id     TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (workspace, path, since, agent)
) STRICT, WITHOUT ROWID;

CREATE INDEX tainted_files_by_digest ON tainted_files (workspace, digest) WHERE digest <> '';
