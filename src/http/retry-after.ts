/** How long a server wants to be left alone, in either form of the header; never longer than the bound. */
export function readRetryAfter(
  header: string | null | undefined,
  msMax: number,
): number | undefined {
  if (header === null || header === undefined) return undefined
  const text = header.trim()
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : untilDate(text)
  return Number.isFinite(ms) ? Math.min(msMax, Math.max(0, ms)) : undefined
}

/** `Date.parse` takes much for a date that is none, such as -1; those of HTTP end in GMT. */
function untilDate(text: string): number {
  return text.endsWith(' GMT') ? Date.parse(text) - Date.now() : Number.NaN
}
