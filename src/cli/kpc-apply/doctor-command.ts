import type { Command } from 'commander';
import { needsOf } from '../../apply/apply-bundle.ts';
import { examineNode, generalNeeds } from '../../apply/doctor.ts';
import type { ApplyEnvironment } from './environment.ts';
import { outputOption } from './options.ts';
import { formatJson } from '../../report/format-json.ts';
import { exitStatus } from '../shared/exit-status.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import { loadBundle } from '../../sides/load-bundle.ts';

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
  // Colours are for this command alone.
  const { formatFindings } = await import('../../report/findings-text.ts');
  await terminal.out(options.output === 'json' ? formatJson(findings) : formatFindings(findings, terminal.colour.out));
  return findings.some(({ severity }) => severity === 'error') ? exitStatus.differs : exitStatus.ok;
}
