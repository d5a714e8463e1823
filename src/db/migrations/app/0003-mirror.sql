-- A copy of a network's history. `id` is the copy's own name, by which it knows itself among the scans.
create table mirror (
  one integer primary key check (one = 1),
  id {text} not null,
  synchronizer_id {text}
);

-- The scans of the network, as enough of them last listed them.
create table mirror_peer (
  base {text} primary key,
  sv_name {text} not null
);

-- Answers that enough other scans contradicted: the newest of them, with both items.
create table mirror_dissent (
  number bigint primary key,
  noted_at bigint not null,
  base {text} not null,
  sv_name {text} not null,
  after_migration_id bigint,
  after_record_time {text},
  item_index bigint not null,
  encoding {text} not null,
  agreed {text} not null,
  found {text} not null
);

-- How often each scan was contradicted, also where the evidence is no longer kept.
create table mirror_dissent_count (
  base {text} primary key,
  dissents bigint not null
);
