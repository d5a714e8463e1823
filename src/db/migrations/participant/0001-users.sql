-- Who may do what on this participant: identity providers, users with their rights, parties, and
-- the record of every administrative change.

-- The default provider is the row with the empty id and no issuer, so that every user and party
-- refers to a provider that exists.
create table identity_providers (
  identity_provider_id {text} primary key,
  is_deactivated integer not null,
  issuer {text} unique,
  jwks_url text not null,
  audience text not null
);
insert into identity_providers (identity_provider_id, is_deactivated, issuer, jwks_url, audience)
  values ('', 0, null, '', '');

create table users (
  user_id {text} primary key,
  identity_provider_id {text} not null references identity_providers (identity_provider_id),
  primary_party text not null,
  is_deactivated integer not null,
  primary_party_authentication integer not null,
  resource_version bigint not null,
  annotations text not null,
  created_at text not null
);
create index users_by_provider on users (identity_provider_id, user_id);

-- `kind` is the protocol's number of the right; `party` is empty for rights without one.
create table user_rights (
  user_id {text} not null references users (user_id) on delete cascade,
  kind integer not null,
  party {text} not null,
  primary key (user_id, kind, party)
) {without_rowid};

create table parties (
  party {text} primary key,
  identity_provider_id {text} not null references identity_providers (identity_provider_id),
  is_local integer not null,
  resource_version bigint not null,
  annotations text not null,
  created_at text not null
);
create index parties_by_provider on parties (identity_provider_id);

-- Rows are only ever added. The order of the ids is the order of time.
create table audit (
  audit_id {text} primary key,
  at text not null,
  caller_user_id text,
  caller_identity_provider_id text not null,
  action text not null,
  subject_kind text not null,
  subject_id {text} not null,
  before_change text,
  after_change text,
  trace_id text not null
);
create index audit_by_subject on audit (subject_kind, subject_id, audit_id);
