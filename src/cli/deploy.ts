import { Command, Option } from 'commander'
import { addSourceOptions } from './check-config.ts'
import type { DeployTarget } from './deploy-files.ts'
import type { CliContext } from './output.ts'

const TARGETS = {
  kubernetes: 'Print the Kubernetes manifests of a node: StatefulSet, Service, volumes, monitor.',
  compose: 'Print a compose file for a node.',
} as const satisfies Record<DeployTarget, string>

/** The command `deploy`: what a node is deployed with, made from its checked configuration. */
export function deployCommand(context: CliContext): Command {
  const command = new Command('deploy').description(
    'Print what to deploy a node with, made from its checked configuration.',
  )
  for (const target of Object.keys(TARGETS) as DeployTarget[]) {
    command.addCommand(targetCommand(target, context))
  }
  return command.addHelpText(
    'after',
    `
Texts of secrets are never printed; the output says which secrets it needs.

Examples:
  annals deploy kubernetes -f validator-values.yaml -p participant-values.yaml | kubectl apply -f -
  annals deploy compose -f validator-values.yaml --secrets secrets/ > compose.yaml`,
  )
}

function targetCommand(target: DeployTarget, context: CliContext): Command {
  return addSourceOptions(new Command(target).description(TARGETS[target]))
    .addOption(new Option('--image <name>', 'image of the node (default annals:<version>)'))
    .action(async (args) => {
      const { runDeploy } = await import('./deploy-files.ts')
      await runDeploy(target, args, context)
    })
}
