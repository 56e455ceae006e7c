import { Chalk } from 'chalk';
import type { Command } from 'commander';
import { printable } from '../base/printable.ts';
import { needsOf } from '../apply/apply-bundle.ts';
import { examineNode, generalNeeds } from '../apply/doctor.ts';
import type { Finding } from '../apply/finding.ts';
import type { ApplyEnvironment } from './apply-environment.ts';
import { outputOption } from './apply-options.ts';
import { formatJson } from './format-json.ts';
import { exitStatus, type ExitStatus } from './exit-status.ts';
import { loadBundle } from './load-bundle.ts';

interface DoctorOptions {
  readonly output: 'text' | 'json';
}

export function addDoctorCommand(
  program: Command,
  environment: ApplyEnvironment,
  done: (status: ExitStatus) => void,
): void {
  program
    .command('doctor')
    .description(
      'Check what this node has and lacks, for one bundle or in general: exit status 1 if something must be fixed.',
    )
    .argument('[folder]', 'the bundle')
    .addOption(outputOption())
    .action(async (folder: string | undefined, options: DoctorOptions) =>
      done(await runDoctor(folder, options, environment)),
    );
}

async function runDoctor(
  folder: string | undefined,
  options: DoctorOptions,
  { terminal, host }: ApplyEnvironment,
): Promise<ExitStatus> {
  const needs = folder === undefined ? generalNeeds : needsOf(await loadBundle(folder));
  const findings = await examineNode(host, needs);
  await terminal.out(options.output === 'json' ? formatJson(findings) : formatFindings(findings, terminal.colour.out));
  return findings.some(({ severity }) => severity === 'error') ? exitStatus.differs : exitStatus.ok;
}

function formatFindings(findings: readonly Finding[], colour: boolean): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  const paint = { ok: chalk.green, note: chalk.cyan, warning: chalk.yellow, error: chalk.red };
  const lines = findings.flatMap(({ severity, text, advice }) => [
    `${paint[severity](severity.padEnd(7))} ${printable(text)}`,
    ...(advice === undefined ? [] : [`        ${chalk.dim(printable(advice))}`]),
  ]);
  return `${lines.join('\n')}\n`;
}
