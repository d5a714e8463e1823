import { Command } from 'commander'
import {
  type ConnectionOptions,
  connect,
  connectionOptions,
  EXIT_CODES_HELP,
  printLine,
} from './ledger-client.ts'
import type { CliContext } from './output.ts'
import { formatTable, printable } from './table.ts'

type Provider = {
  identityProviderId: string
  isDeactivated: boolean
  issuer: string
  jwksUrl: string
  audience: string
}
type CreateOptions = ConnectionOptions & {
  issuer: string
  jwksUrl: string
  audience?: string
  deactivated?: boolean
}

const EXAMPLES = `
Examples:
  annals idps list
  annals idps create new-idp --issuer https://login.example/ --jwks-url https://login.example/jwks --audience https://ledger.example
  annals idps delete old-idp

A provider that still has users is not deleted; move them first with \`annals users move --all\`.
${EXIT_CODES_HELP}`

/** annals idps …: administration of identity providers over the ledger API of a running node. */
export const idpsCommand = (context: CliContext): Command => {
  const idps = new Command('idps')
    .description('Administer the identity providers of a node.')
    .addHelpText('after', EXAMPLES)
  const sub = (name: string, description: string): Command =>
    connectionOptions(idps.command(name).description(description))

  sub('list', 'list the identity providers').action((options: ConnectionOptions) =>
    listProviders(context, options),
  )
  sub('create <id>', 'create an identity provider')
    .requiredOption('--issuer <issuer>', 'the `iss` of its tokens, exactly')
    .requiredOption('--jwks-url <url>', 'where its key set is')
    .option('--audience <audience>', 'the `aud` that its tokens must have')
    .option('--deactivated', 'create it, but refuse its tokens for now')
    .action((id: string, options: CreateOptions) => createProvider(context, id, options))
  sub('delete <id>', 'delete an identity provider without users').action(
    (id: string, options: ConnectionOptions) => deleteProvider(context, id, options),
  )
  return idps
}

const listProviders = async (context: CliContext, options: ConnectionOptions): Promise<void> => {
  const { identityProviderConfigs: providers } = await connect(context, options).request<{
    identityProviderConfigs: Provider[]
  }>('GET', '/v2/idps')
  printLine(
    context,
    options.json
      ? JSON.stringify(providers)
      : formatTable(
          ['IDENTITY PROVIDER', 'ACTIVE', 'ISSUER', 'KEY SET', 'AUDIENCE'],
          providers.map((provider) => [
            provider.identityProviderId,
            provider.isDeactivated ? 'no' : 'yes',
            provider.issuer,
            provider.jwksUrl,
            provider.audience,
          ]),
        ),
  )
}

const createProvider = async (
  context: CliContext,
  id: string,
  options: CreateOptions,
): Promise<void> => {
  const { identityProviderConfig } = await connect(context, options).request<{
    identityProviderConfig: Provider
  }>('POST', '/v2/idps', {
    identityProviderConfig: {
      identityProviderId: id,
      isDeactivated: options.deactivated ?? false,
      issuer: options.issuer,
      jwksUrl: options.jwksUrl,
      audience: options.audience ?? '',
    },
  })
  printLine(
    context,
    options.json ? JSON.stringify(identityProviderConfig) : `Created ${printable(id)}.`,
  )
}

const deleteProvider = async (
  context: CliContext,
  id: string,
  options: ConnectionOptions,
): Promise<void> => {
  await connect(context, options).request('DELETE', `/v2/idps/${encodeURIComponent(id)}`)
  printLine(context, options.json ? JSON.stringify({ deleted: id }) : `Deleted ${printable(id)}.`)
}
