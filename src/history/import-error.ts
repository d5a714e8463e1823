/** A line that cannot be imported. Nothing of the batch it stands in has been stored. */
export class ImportError extends Error {
  override name = 'ImportError'
  readonly line: number
  constructor(line: number, reason: string) {
    super(`Line ${line}: ${reason}`)
    this.line = line
  }
}
