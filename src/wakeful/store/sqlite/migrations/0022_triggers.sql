-- Triggers of agents, what they delivered, and how much input was refused.
CREATE TABLE triggers (
    trigger_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    mode TEXT NOT NULL,
    generation INTEGER NOT NULL,
    say TEXT NOT NULL,
    thread TEXT NOT NULL,
    signature TEXT,
    signing_env TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    deliveries INTEGER NOT NULL,
    last_delivered_at INTEGER,
    last_delivery TEXT,
    last_source TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX triggers_of_agent ON triggers (agent, name);
CREATE TABLE trigger_deliveries (
    trigger_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    agent INTEGER NOT NULL,
    digest TEXT NOT NULL,
    became TEXT NOT NULL,
    delivered_at INTEGER NOT NULL,
    PRIMARY KEY (trigger_id, delivery_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE refused_input (
    agent INTEGER NOT NULL,
    door TEXT NOT NULL,
    reason TEXT NOT NULL,
    number INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (agent, door, reason)
) STRICT, WITHOUT ROWID;
