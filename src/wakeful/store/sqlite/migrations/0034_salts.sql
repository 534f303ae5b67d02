-- What was drawn for the address of a trigger, and for the topics and codes of a channel. NULL: from before there were salts.
ALTER TABLE triggers ADD COLUMN salt TEXT;
ALTER TABLE channels ADD COLUMN salt TEXT;
