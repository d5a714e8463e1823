-- The traffic of this participant: the newest row tells how its account stands, older ones may. Bytes, but
-- `traffic_base` in millionths of a byte; `traffic_base_at` in microseconds since 1970. Null where
-- no rules say what traffic costs.
alter table ledger_updates add column traffic_purchased bigint;
alter table ledger_updates add column traffic_consumed bigint;
alter table ledger_updates add column traffic_base bigint;
alter table ledger_updates add column traffic_base_at bigint;

-- What a migration carried over, for as long as there is no update.
alter table ledger add column traffic_purchased bigint;
alter table ledger add column traffic_consumed bigint;
alter table ledger add column traffic_base bigint;
alter table ledger add column traffic_base_at bigint;

-- Updates up to this offset are gone.
alter table ledger add column pruned_offset bigint not null default 0;

-- Where a contract set out, 0 if under an earlier migration: its update must stay until it has arrived.
alter table reassignments add column unassigned_offset bigint;

-- When the participant is pruned; no row: never. Made equal to the configuration at every start.
create table pruning_schedule (
  id integer primary key check (id = 1),
  cron text not null,
  max_duration_ms bigint not null,
  retention_ms bigint not null
);
