import { unknownTemplate } from './errors.ts'
import { FOREIGN_INTERFACES } from './foreign-interfaces.ts'
import { type Interface, identifierOf, type TemplateEntry } from './template.ts'

/** The templates of a ledger, by the names that clients and the store have for them. */
export type TemplateIndex = {
  /** By `Module:Entity`, as the store names it. */
  find(name: string): TemplateEntry
  /** `#package-name:Module:Entity`, or with the package id. */
  entry(templateId: string): TemplateEntry
  /** The full id of a known interface, named like a template. */
  interfaceId(id: string): string | undefined
}

export function indexTemplates(templates: readonly TemplateEntry[]): TemplateIndex {
  const byName = new Map(templates.map((entry) => [entry.template.name, entry]))
  const implemented = templates.flatMap((entry) =>
    [...entry.interfaces.values()].map((one) => one.interface),
  )
  const interfaces = [...implemented, ...FOREIGN_INTERFACES]
  return {
    find(name) {
      const entry = byName.get(name)
      if (entry === undefined) throw unknownTemplate(name)
      return entry
    },
    entry(templateId) {
      const entry = byName.get(templateId.slice(templateId.indexOf(':') + 1))
      if (entry === undefined || !isNameOf(templateId, entry.template)) {
        throw unknownTemplate(templateId)
      }
      return entry
    },
    interfaceId(id) {
      const found = interfaces.find((known) => isNameOf(id, known))
      return found && identifierOf(found)
    },
  }
}

function isNameOf(id: string, named: Interface): boolean {
  return id === `#${named.packageName}:${named.name}` || id === identifierOf(named)
}
