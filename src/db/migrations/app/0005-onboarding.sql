-- The parties that a sponsor has admitted to its network, so that a later start asks nobody.
create table onboarding (
  party {text} primary key,
  sponsor_url text not null,
  onboarded_at text not null
);
