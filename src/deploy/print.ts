import { stringify } from 'yaml'

/** Documents of YAML under a comment. */
export function printDocuments(comment: readonly string[], documents: readonly unknown[]): string {
  const head = comment.map((line) => `# ${line}`.trimEnd()).join('\n')
  const texts = documents.map((document) =>
    stringify(document, { lineWidth: 0, blockQuote: 'literal', aliasDuplicateObjects: false }),
  )
  return `${head}\n${documents.length === 1 ? '' : '---\n'}${texts.join('---\n')}`
}
