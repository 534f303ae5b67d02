-- What retention leaves behind. cut: the last event of the stream that is gone, and cut_hash what the rest is chained to.
ALTER TABLE agents ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN cut_hash BLOB;

-- Blobs to which nothing refers, and since when that is known. Whoever puts such a blob again takes it out of here.
CREATE TABLE blob_doubts (
    digest TEXT NOT NULL PRIMARY KEY,
    since  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Artifacts whose bytes are gone.
ALTER TABLE artifacts ADD COLUMN expired_at INTEGER;

-- What a turn cost stays when the turn is gone.
ALTER TABLE turn_costs ADD COLUMN agent_name TEXT;
