-- A command that was refused leaves a row too, so that who submitted it hears of it among the
-- completions: it takes an offset and a record time, has no item, and says here why. Null for updates.
alter table ledger_updates add column refusal text;

-- How many contracts are active with this row, so that nobody has to count them; null on rows from before.
alter table ledger_updates add column active_contracts bigint;
