export type ContentCoding = 'identity' | 'gzip' | 'zstd'

/** What we like best first: zstd is both smaller and quicker than gzip. */
const OFFERED: ContentCoding[] = ['zstd', 'gzip', 'identity']

/** The coding that the client's Accept-Encoding header rates highest, ours first among equals. */
export function chooseCoding(acceptEncoding: string | undefined): ContentCoding {
  if (acceptEncoding === undefined || acceptEncoding === '') return 'identity'
  const rates = new Map<string, number>()
  for (const part of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    const rate = quality === undefined ? 1 : Number(quality.slice(2))
    rates.set(name === 'x-gzip' ? 'gzip' : name, Number.isFinite(rate) ? rate : 0)
  }
  let best: ContentCoding = 'identity'
  let bestRate = 0
  for (const coding of OFFERED) {
    // Unless it is named, identity is acceptable but wished for least.
    const rate = rates.get(coding) ?? rates.get('*') ?? (coding === 'identity' ? 0.001 : 0)
    if (rate > bestRate) {
      best = coding
      bestRate = rate
    }
  }
  return best
}
