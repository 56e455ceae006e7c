import type { Command } from 'commander';
import { needsOf } from '../../apply/change/apply-bundle.ts';
import { examineForAnyMode, examineNode, examineState } from '../../apply/doctor/doctor.ts';
import type { ApplyEnvironment, NodeOptions } from './environment.ts';
import { openSource } from './bundle-source.ts';
import { addStateOption, addTrustOption, outputOption, type TrustOptions } from './options.ts';
import { formatJson } from '../../report/format-json.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { loadBundle } from '../../sides/load-bundle.ts';

interface DoctorOptions extends NodeOptions, TrustOptions {
  readonly output: 'text' | 'json';
}

export function addDoctorCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('doctor')
    .description(
      'Check what this node has and lacks, for one bundle or for each mode: exit status 1 if something must be fixed.',
    )
    .argument('[bundle]', 'its folder or pack')
    .addOption(outputOption());
  addStateOption(addTrustOption(command)).action(async (folder: string | undefined, options: DoctorOptions) =>
    done(await runDoctor(folder, options, environment)),
  );
}

async function runDoctor(
  folder: string | undefined,
  options: DoctorOptions,
  environment: ApplyEnvironment,
): Promise<ExitStatus> {
  const { terminal, host } = environment;
  const findings = [
    ...(folder === undefined
      ? await examineForAnyMode(host)
      : await examineNode(host, needsOf(await loadBundle(folder, openSource(folder, options, environment).read)))),
    ...(await examineState(host, options.stateDir)),
  ].toSorted((a, b) => Number(a.mode !== undefined) - Number(b.mode !== undefined));
  // Colours are for this command alone.
  const { formatFindings } = await import('../../report/render-diagnostics.ts');
  await terminal.out(options.output === 'json' ? formatJson(findings) : formatFindings(findings, terminal.colour.out));
  return findings.some(({ severity }) => severity === 'error') ? exitStatus.differs : exitStatus.ok;
}
