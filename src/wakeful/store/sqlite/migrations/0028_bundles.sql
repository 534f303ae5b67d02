-- Old rows of the log, packed together. id = that of its first row. A row that stands in one keeps its number, its turn
-- and its hash in `appends`; its header is empty, and its body says where it is.
CREATE TABLE bundles (
    id   INTEGER PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;
