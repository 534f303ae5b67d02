-- Requests with an idempotency key, and their answers.
CREATE TABLE keyed_requests (
    caller TEXT NOT NULL,
    request_key TEXT NOT NULL,
    agent INTEGER NOT NULL,
    route TEXT NOT NULL,
    digest TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    status INTEGER,
    answer TEXT,
    answered_at INTEGER,
    PRIMARY KEY (caller, request_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keyed_requests_by_age ON keyed_requests (begun_at, caller, request_key);
