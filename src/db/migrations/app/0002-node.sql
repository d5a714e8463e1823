-- The synchronizer migration that the node lives in, so that a start with another id is noticed.
create table node (
  id integer primary key check (id = 1),
  migration_id bigint not null
);
