import { Option, type Command } from 'commander';
import { kubeProxyVersions, newestRelease, releases } from '../../kube-proxy/releases.ts';
import { formatJson } from '../../report/format-json.ts';
import { type Done, type Terminal, exitStatus } from './terminal.ts';
import { version } from '../../base/version.ts';

/** What a bug report has to name. kpc and kpc-apply are released together, so both have this command. */
export function addVersionCommand(program: Command, terminal: Terminal, done: Done): void {
  program
    .command('version')
    .description(
      'Print the version, the kube-proxy and releases of Kubernetes that it follows, and the Node that runs it.',
    )
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addOption(new Option('--json', 'the same as --output json').default(false, 'no'))
    .action(async ({ output, json }: { readonly output: 'text' | 'json'; readonly json: boolean }) => {
      const nodeVersion = process.version;
      const kubeProxyVersion = kubeProxyVersions[newestRelease];
      const range = `${releases[0]} to ${newestRelease}`;
      await terminal.out(
        json || output === 'json'
          ? formatJson({ kpcVersion: version, kubeProxyVersion, kubernetesVersions: releases, nodeVersion })
          : `${program.name()} ${version}\nkube-proxy ${kubeProxyVersion} (Kubernetes ${range})\nNode ${nodeVersion}\n`,
      );
      done(exitStatus.ok);
    });
}
