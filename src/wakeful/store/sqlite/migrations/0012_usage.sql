-- What each agent has used in all: a view of its log, declared as data like the others.
CREATE TABLE usage (
    agent INTEGER NOT NULL PRIMARY KEY,
    rounds INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    total_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    audio_tokens INTEGER NOT NULL,
    last_turn TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO usage
    SELECT id, rounds, input_tokens, output_tokens, total_tokens, cached_input_tokens, cache_write_tokens,
           reasoning_tokens, audio_tokens, last_turn
    FROM agents WHERE rounds > 0 OR last_turn IS NOT NULL;
ALTER TABLE agents DROP COLUMN rounds;
ALTER TABLE agents DROP COLUMN input_tokens;
ALTER TABLE agents DROP COLUMN output_tokens;
ALTER TABLE agents DROP COLUMN total_tokens;
ALTER TABLE agents DROP COLUMN cached_input_tokens;
ALTER TABLE agents DROP COLUMN cache_write_tokens;
ALTER TABLE agents DROP COLUMN reasoning_tokens;
ALTER TABLE agents DROP COLUMN audio_tokens;
ALTER TABLE agents DROP COLUMN last_turn;
