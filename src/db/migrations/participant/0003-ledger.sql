-- The embedded ledger: its contracts, and its own updates with their offsets.
create table ledger (
  id integer primary key check (id = 1),
  -- Makes the ids of updates and contracts different from those of every other ledger.
  nonce text not null,
  -- Null unless the second synchronizer is switched on.
  second_synchronizer_id text
);

-- A contract is active while it has no `archived_offset`. Those that a migration carried over have
-- 0 as their `created_offset`.
create table contracts (
  contract_id {text} primary key,
  template {text} not null,
  payload text not null,
  signatories text not null,
  observers text not null,
  created_at text not null,
  created_offset bigint not null,
  created_node_id integer not null,
  archived_offset bigint,
  -- Null while the contract is on its way from one synchronizer to the other.
  synchronizer_id text,
  reassignment_counter bigint not null
);

-- Who has a stake in which active contract.
create table contract_stakeholders (
  party {text} not null,
  template {text} not null,
  contract_id {text} not null,
  primary key (party, template, contract_id)
) {without_rowid};

-- Contracts on their way between two synchronizers.
create table reassignments (
  unassign_id {text} primary key,
  contract_id {text} not null,
  source_synchronizer_id text not null,
  target_synchronizer_id text not null,
  reassignment_counter bigint not null,
  assigned_offset bigint
);

-- `item` is the update as the history shows it, in the lossless form with labels. The newest update is
-- never removed: it is the ledger's end. Of two processes that want the same offset one gets it, so
-- all that commits is in one order.
create table ledger_updates (
  ledger_offset {integer} primary key,
  record_time {text} not null,
  update_id {text} not null,
  item text not null,
  -- Who sees which event of the update.
  witnesses text not null,
  -- The command that made it; `change_id` is what deduplication compares.
  change_id {text},
  command_id text not null,
  user_id text not null,
  act_as text not null,
  submission_id text not null
);
create index ledger_updates_by_change on ledger_updates (change_id, ledger_offset);
