-- Which contents the log names, so that retention reads each row of it once. row = that of the log, or the number of the
-- agent shifted, where the name stays for as long as the log does. is_use: not only where a result is kept in full.
CREATE TABLE blob_references (
    digest TEXT NOT NULL,
    row    INTEGER NOT NULL,
    is_use INTEGER NOT NULL,
    PRIMARY KEY (digest, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_references_of_row ON blob_references (row);

-- How far the log of an agent was read for it.
CREATE TABLE blob_readings (
    agent INTEGER PRIMARY KEY,
    seq   INTEGER NOT NULL
) STRICT;

-- Blobs that were read, and which others each names.
CREATE TABLE blob_contents (
    digest TEXT NOT NULL PRIMARY KEY,
    names  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
