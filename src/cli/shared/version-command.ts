import { Option, type Command } from 'commander';
import { kubeProxyVersions, newestRelease, releaseRange, releases } from '../../kube-proxy/releases.ts';
import { formatJson } from '../../say/formats/json.ts';
import type { version as versionSchema } from '../../say/outputs/envelope.ts';
import { type Done, type Terminal, exitStatus } from './terminal.ts';
import { version } from '../../base/version.ts';

/** Everything that a bug report should name. kpc and kpc-apply are released together, so both have this command. */
export function addVersionCommand(program: Command, terminal: Terminal, done: Done): void {
  program
    .command('version')
    .description(
      'Print the version, the kube-proxy and releases of Kubernetes that it follows, and the Node that runs it.',
    )
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .action(async ({ output }: { readonly output: 'text' | 'json' }) => {
      const nodeVersion = process.version;
      const kubeProxyVersion = kubeProxyVersions[newestRelease];
      await terminal.out(
        output === 'json'
          ? formatJson<typeof versionSchema>({
              command: `${program.name()} version`,
              snapshots: [],
              findings: [],
              result: { kubeProxyVersion, releases, nodeVersion },
            })
          : `${program.name()} ${version}\nkube-proxy ${kubeProxyVersion} (Kubernetes ${releaseRange})\nNode ${nodeVersion}\n`,
      );
      done(exitStatus.ok);
    });
}
