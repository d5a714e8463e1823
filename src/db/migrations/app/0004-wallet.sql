-- Who has a wallet on this node. Users of the configuration act for the operator's party; all others
-- have registered and have a party of their own.
create table wallet_user (
  user_id {text} primary key,
  party {text} not null,
  is_configured integer not null,
  -- Whether the node gave the user its right, so that it may take it away again.
  is_granted integer not null
);

-- Up to which offset of which participant a party's log is complete. Offsets begin anew in every
-- migration.
create table wallet_party (
  party {text} primary key,
  participant_id text not null,
  migration_id bigint not null,
  followed_offset bigint not null
);

-- What the ledger's updates meant to a wallet, newest last. It outlives pruning and migrations.
create table wallet_log (
  party {text} not null,
  sequence bigint not null,
  event_id {text} not null,
  -- The command that made it, if the wallet itself gave it.
  command_id {text} not null,
  record_time text not null,
  item text not null,
  primary key (party, sequence)
);
create unique index wallet_log_by_event on wallet_log (party, event_id);
create index wallet_log_by_command on wallet_log (party, command_id);

-- How far an offer has come, by the tracking id that its sender gave it.
create table wallet_offer (
  sender {text} not null,
  tracking_id {text} not null,
  status text not null,
  update_id text not null,
  contract_id text not null,
  failure_kind text,
  reason text,
  primary key (sender, tracking_id)
);

-- Requests that are carried out once, whoever repeats them: written down before the ledger hears of
-- them, and answered from here afterwards.
create table wallet_request (
  party {text} not null,
  kind {text} not null,
  tracking_id {text} not null,
  content text not null,
  -- Null while nobody knows what has become of it.
  answer text,
  primary key (party, kind, tracking_id)
);

-- What automations are about to do, stored before the ledger hears of it, so that a start after a crash
-- finds out what has become of it.
create table automation_act (
  tracking_id {text} primary key,
  automation text not null,
  party text not null,
  subject text not null,
  act_as text not null,
  what text not null,
  begin_offset bigint not null,
  begun_at text not null
);

-- What each automation has last done for each party.
create table automation_done (
  automation {text} not null,
  party {text} not null,
  what text not null,
  update_id text not null,
  done_at text not null,
  primary key (automation, party)
);
