-- Who this participant is. Chosen at the first start; a later start must agree.
create table participant (
  id integer primary key check (id = 1),
  migration_id bigint not null,
  party_hint text not null,
  node_identifier text not null,
  fingerprint text not null,
  synchronizer_id text not null
);
