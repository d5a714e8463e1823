import assert from 'node:assert/strict'

type Item = Record<string, unknown> & {
  update_id: string
  root_event_ids?: string[]
  events_by_id?: Record<string, TreeEvent>
  event?: Record<string, unknown> & { created_event?: TreeEvent }
}
type TreeEvent = Record<string, unknown> & {
  event_type: string
  contract_id: string
  consuming?: boolean
  child_event_ids?: string[]
}

export type LiveContract = {
  createArguments: string
  synchronizer: string | undefined
  counter: number
}

/**
 * Reads updates of a history in order and keeps the contracts that are live. Fails when a consuming
 * event does not end exactly one live contract, or a reassignment's counters do not fit.
 */
export function createReplay() {
  const live = new Map<string, LiveContract>()
  const pending = new Map<string, { contractId: string; counter: number }>()
  let lastRecordTime = ''

  function readTransaction(item: Item): void {
    const events = item.events_by_id ?? {}
    const visit = (id: string): void => {
      const event = events[id]
      assert.ok(event, `${id} is an event of its update`)
      if (event.event_type === 'created_event') {
        assert.ok(!live.has(event.contract_id), 'a contract is created once')
        live.set(event.contract_id, {
          createArguments: JSON.stringify(event.create_arguments),
          synchronizer: item.synchronizer_id as string,
          counter: 0,
        })
        return
      }
      const target = live.get(event.contract_id)
      assert.ok(target, `${event.choice} is exercised on a live contract`)
      assert.equal(target.synchronizer, item.synchronizer_id)
      if (event.consuming) assert.ok(live.delete(event.contract_id))
      event.child_event_ids?.forEach(visit)
    }
    item.root_event_ids?.forEach(visit)
  }

  function readReassignment(event: NonNullable<Item['event']>): void {
    const counter = Number(event.reassignment_counter)
    const unassignId = event.unassign_id as string
    const created = event.created_event
    if (created === undefined) {
      const contract = live.get(event.contract_id as string)
      assert.ok(contract, 'a live contract is unassigned')
      assert.equal(contract.synchronizer, event.source_synchronizer)
      assert.ok(counter > contract.counter, 'the counter rises with each unassignment')
      contract.counter = counter
      contract.synchronizer = undefined
      pending.set(unassignId, { contractId: event.contract_id as string, counter })
      return
    }
    const started = pending.get(unassignId)
    assert.deepEqual(started, { contractId: created.contract_id, counter })
    pending.delete(unassignId)
    const contract = live.get(created.contract_id)
    assert.ok(contract)
    assert.equal(JSON.stringify(created.create_arguments), contract.createArguments)
    contract.synchronizer = event.target_synchronizer as string
  }

  return {
    live,
    read(item: Item): void {
      const recordTime = item.record_time as string
      assert.ok(recordTime > lastRecordTime, 'record times rise strictly')
      lastRecordTime = recordTime
      if (item.event === undefined) readTransaction(item)
      else readReassignment(item.event)
    },
  }
}
