-- How the files of the home stood when they were read last.
CREATE TABLE runtime_files (
    agent INTEGER NOT NULL PRIMARY KEY,
    problems TEXT NOT NULL,
    loaded_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
