import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type OwnScan, type ScanGroup, withOwnScan } from './own-scan.ts'

const SELF = { publicUrl: 'https://scan.acme.example', svName: 'acme' }
const PEERS = [
  { publicUrl: 'https://scan.sv-1.example', svName: 'sv-1' },
  { publicUrl: 'https://scan.sv-2.example', svName: 'sv-2' },
]
const founder = { ...SELF, domainId: 'global::1220' }
const copy = { ...SELF, domainId: undefined }

const CASES: [fact: string, groups: ScanGroup[], own: OwnScan | undefined, listed: ScanGroup[]][] =
  [
    ['without an address the list stays as it is', [], undefined, []],
    [
      'a node with a network of its own lists itself',
      [],
      founder,
      [{ domainId: 'global::1220', scans: [SELF] }],
    ],
    ['a copy that knows no network lists nobody', [], copy, []],
    [
      'a copy lists itself beside its peers',
      [{ domainId: 'theirs::1220', scans: PEERS }],
      copy,
      [{ domainId: 'theirs::1220', scans: [...PEERS, SELF] }],
    ],
    [
      'a copy that the network lists is there once, under its own name',
      [
        {
          domainId: 'theirs::1220',
          scans: [...PEERS, { publicUrl: 'https://scan.acme.example/', svName: 'x' }],
        },
      ],
      copy,
      [{ domainId: 'theirs::1220', scans: [...PEERS, SELF] }],
    ],
    [
      'the address may be given with the path of the scan API',
      [],
      { ...founder, publicUrl: 'https://acme.example/net/api/scan/' },
      [
        {
          domainId: 'global::1220',
          scans: [{ publicUrl: 'https://acme.example/net', svName: 'acme' }],
        },
      ],
    ],
  ]

for (const [fact, groups, own, listed] of CASES) {
  test(fact, () => {
    const before = structuredClone(groups)
    assert.deepEqual(withOwnScan(groups, own), listed)
    assert.deepEqual(groups, before)
  })
}
