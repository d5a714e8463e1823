import { showcase } from './showcase.ts'
import * as v from './values.ts'
import type { World } from './world.ts'

// What happens besides payments: rewards, names, votes, visits to another synchronizer, and a show of values.

export function arrangeAffairs(world: World) {
  const { ledger, templates, parties, rules, archive, person } = world
  const { dso, alice, harbor, alpine } = parties

  /** Looked up, not changed: a non-consuming choice without children. */
  function fetchRules(bare: boolean): void {
    ledger.submit({ bare }, (steps) => {
      const argument = v.record({ p: v.party(alice), knownRound: v.none })
      steps.exercise(rules().amulet, { name: 'AmuletRules_Fetch', argument, actors: [alice] }, () =>
        v.record({
          dso: v.party(dso),
          isDevNet: v.bool(true),
          featuredApps: v.genMap([]),
          note: v.none,
        }),
      )
    })
  }

  /** Several roots: every coupon of an app's owner archived side by side. */
  function rewardApp(round: number): void {
    const coupons = ledger.submit({ workflow: 'reward-app' }, (steps) => {
      return [harbor, alpine].map((provider) =>
        steps.create(
          templates.appRewardCoupon,
          {
            dso: v.party(dso),
            provider: v.party(provider),
            featured: v.bool(provider === harbor),
            amount: v.numeric('0.8400000000'),
            round: v.record({ number: v.int64(round) }),
            beneficiary: v.none,
          },
          { signatories: [dso], observers: [provider] },
        ),
      )
    })
    ledger.submit({ workflow: 'expire-rewards' }, (steps) => {
      for (const coupon of coupons) archive(steps, coupon, [dso])
    })
  }

  function nameAndVote(turn: number): void {
    ledger.submit({ workflow: 'name-service' }, (steps) => {
      steps.create(
        templates.ansEntry,
        {
          user: v.party(person(turn)),
          dso: v.party(dso),
          name: v.text(`shop-${turn}.unverified.ans`),
          url: v.text(''),
          description: v.text('Käse & Brot'),
          expiresAt: v.timestamp(steps.nowMicros + 90 * 86_400_000_000),
        },
        { signatories: [person(turn), dso] },
      )
    })
    ledger.submit({ workflow: 'vote' }, (steps) => {
      const vote = (sv: string, accept: boolean) =>
        v.record({
          sv: v.party(sv),
          accept: v.bool(accept),
          reason: v.record({ url: v.text(''), body: v.text(accept ? 'agreed' : 'too early') }),
        })
      const request = v.variant(
        'ARC_DsoRules',
        v.record({
          dsoAction: v.variant(
            'SRARC_SetConfig',
            v.record({
              newConfig: v.record({
                acsCommitmentReconciliationInterval: v.some(v.int64(1800)),
                nextScheduledSynchronizerUpgrade: v.none,
              }),
            }),
          ),
        }),
      )
      const voting = steps.create(
        templates.voteRequest,
        {
          dso: v.party(dso),
          requester: v.text('Harbor'),
          action: request,
          voteBefore: v.timestamp(steps.nowMicros + 604_800_000_000),
          votes: v.textMap([
            ['Harbor', vote(harbor, true)],
            ['Alpine', vote(alpine, false)],
          ]),
          targetEffectiveAt: v.none,
        },
        { signatories: [dso] },
      )
      archive(steps, voting, [dso])
    })
  }

  /** There and back again: counters 1 and 2, the contract in use on the exchange's synchronizer between. */
  function visitExchange(owner: string, assignFirst: boolean): void {
    const fields = {
      user: v.party(owner),
      dso: v.party(dso),
      name: v.text('trade.unverified.ans'),
      url: v.text('https://harbor.example/trade'),
    }
    const entry = ledger.submit({}, (steps) =>
      steps.create(templates.ansEntry, fields, { signatories: [owner, dso] }),
    )
    const there = ledger.reassign(entry, world.exchange, owner)
    there.unassign()
    there.assign()
    ledger.submit({ synchronizer: world.exchange, workflow: 'trade' }, (steps) => {
      const choice = {
        name: 'AnsEntry_Fetch',
        argument: v.record({ p: v.party(owner) }),
        actors: [owner],
      }
      steps.exercise(entry, choice, () => v.record(fields))
    })
    const back = ledger.reassign(entry, world.global, owner)
    if (assignFirst) {
      back.assign()
      back.unassign()
    } else {
      back.unassign()
      back.assign()
    }
    ledger.submit({}, (steps) => archive(steps, entry, [owner, dso]))
  }

  function showValues(every: number, bare: boolean): void {
    const [packageId = ''] = templates.amulet.id.split(':')
    const type = { packageId, moduleName: 'Splice.Types', entityName: 'Round' }
    const rows = showcase({ contract: rules().amulet.id, party: alice, type })
    for (const [title, value] of rows.filter((_, index) => index % every === 0)) {
      ledger.submit({ workflow: `showcase: ${title}`, bare }, (steps) => {
        const shown = steps.create(
          templates.showcase,
          { owner: v.party(alice), title: v.text(title), value },
          { signatories: [alice] },
        )
        steps.exercise(
          shown,
          {
            name: 'Showcase_Echo',
            argument: v.record({ value }),
            actors: [alice],
            consuming: true,
          },
          () => value,
        )
      })
    }
  }

  return { fetchRules, rewardApp, nameAndVote, visitExchange, showValues }
}
