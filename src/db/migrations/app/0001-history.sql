-- The ordered history of updates. Its newest updates, fewer than a frame, stand in `tail`, a row
-- each; all others in `frame`, 25 to a row, compressed, the lossless form with the compact one as its
-- dictionary. Both number from 0.
create table history (
  id integer primary key check (id = 1),
  updates bigint not null,
  frames bigint not null,
  imports bigint not null,
  last_offset bigint not null,
  last_migration_id bigint,
  last_record_time {text},
  last_update_id {text}
);
insert into history (id, updates, frames, imports, last_offset) values (1, 0, 0, 0, 0);

create table tail (
  ordinal bigint primary key,
  entry {blob} not null,
  compact {blob} not null,
  protobuf {blob} not null
);

create table frame (
  number bigint primary key,
  entries {blob} not null,
  compact {blob} not null,
  protobuf {blob} not null,
  checksum bigint not null
);

-- The rows are compressed already.
{postgres} alter table frame alter column compact set storage external;
{postgres} alter table frame alter column protobuf set storage external;

-- The position of each frame's first update, apart from the large rows so that it loads at once.
create table frame_directory (
  number bigint primary key,
  migration_id bigint not null,
  micros bigint not null
);

-- Finds an update by a text it is known by (its id, its external hash): the key is 64 bits of the
-- text's hash, so a reader compares the update itself.
create table update_key (
  key bigint not null,
  ordinal bigint not null,
  primary key (key, ordinal)
) {without_rowid};

-- Updates that re-create the active contracts of a migration. Only /v0/updates shows them.
create table import_update (
  migration_id bigint not null,
  update_id {text} not null,
  contract_id {text} not null,
  entry {blob} not null,
  compact {blob} not null,
  protobuf {blob} not null,
  primary key (migration_id, update_id)
);
create unique index import_update_contract on import_update (migration_id, contract_id);

create table synchronizer_range (
  migration_id bigint not null,
  synchronizer_id {text} not null,
  first_record_time {text} not null,
  last_record_time {text} not null,
  primary key (migration_id, synchronizer_id)
);
