import { Option, type Command } from 'commander';
import { kubeProxyVersion } from '../bundle/kube-proxy-version.ts';
import { exitStatus, type ExitStatus } from './exit-status.ts';
import { formatJson } from './format-json.ts';
import type { Terminal } from './terminal.ts';
import { version } from './version.ts';

interface VersionOptions {
  readonly output: 'text' | 'json';
  readonly json: boolean;
}

/** What a bug report has to name. kpc and kpc-apply are released together, so both have this command. */
export function addVersionCommand(program: Command, terminal: Terminal, done: (status: ExitStatus) => void): void {
  program
    .command('version')
    .description('Print the version, the kube-proxy that it follows, and the Node that runs it.')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addOption(new Option('--json', 'the same as --output json').default(false, 'no'))
    .action(async ({ output, json }: VersionOptions) => {
      const nodeVersion = process.version;
      await terminal.out(
        json || output === 'json'
          ? formatJson({ kpcVersion: version, kubeProxyVersion, nodeVersion })
          : `${program.name()} ${version}\nkube-proxy ${kubeProxyVersion}\nNode ${nodeVersion}\n`,
      );
      done(exitStatus.ok);
    });
}
