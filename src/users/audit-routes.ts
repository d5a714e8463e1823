import type { FastifyInstance } from 'fastify'
import type { Db } from '../db/db.ts'
import { type AuditSubject, listAudit } from './audit.ts'
import { type Authentication, guard, requireAdmin } from './caller.ts'
import { invalidArgument } from './errors.ts'
import { queryPageSize, queryText } from './request-fields.ts'
import { isStorableText } from './user.ts'

const SUBJECTS = { user: 'user', idp: 'identity-provider', party: 'party' } as const

/** /v2/audit, our own: who changed what. Filtered by one of `user`, `idp` and `party`. */
export const auditRoutes = async (
  app: FastifyInstance,
  { db, authentication }: { db: Db; authentication: Authentication },
): Promise<void> => {
  app.get('/v2/audit', guard(authentication, requireAdmin), async (request) => {
    const subjects: AuditSubject[] = []
    for (const [parameter, kind] of Object.entries(SUBJECTS)) {
      const id = queryText(request, parameter)
      if (!isStorableText(id)) throw invalidArgument(`${parameter} is not an id`)
      if (id !== '') subjects.push({ kind, id })
    }
    if (subjects.length > 1) throw invalidArgument('filter by one of user, idp and party')
    return listAudit(db, {
      ...(subjects[0] && { subject: subjects[0] }),
      pageSize: queryPageSize(request),
      pageToken: queryText(request, 'pageToken'),
    })
  })
}
