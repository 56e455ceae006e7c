import { Command, CommanderError } from 'commander';
import { addApplyCommand } from './apply-command.ts';
import { addCleanupCommand } from './apply-cleanup.ts';
import { addConfirmCommand } from './apply-confirm.ts';
import { addDoctorCommand } from './apply-doctor.ts';
import { addDumpCommand } from './apply-dump.ts';
import { explainError, reportFailure, type ApplyEnvironment } from './apply-environment.ts';
import { addPlanCommand } from './apply-plan.ts';
import { addRollbackCommand } from './apply-rollback.ts';
import { addVerifyCommand } from './apply-verify.ts';
import { addWatchCommand } from './apply-watch.ts';
import { exitStatus, type ExitStatus } from './exit-status.ts';
import { version } from './version.ts';

/** Parses the command line and runs the command that it names. */
export async function runApplyProgram(argv: readonly string[], environment: ApplyEnvironment): Promise<ExitStatus> {
  const { terminal } = environment;
  const written: Promise<void>[] = [];
  let status: ExitStatus = exitStatus.ok;
  const program = new Command('kpc-apply')
    .description('Puts a bundle that kpc compiled into the kernel of this node, and keeps it there.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => written.push(terminal.out(text)),
      writeErr: (text) => written.push(terminal.err(text)),
    });
  const done = (result: ExitStatus) => {
    status = result;
  };
  addDoctorCommand(program, environment, done);
  addPlanCommand(program, environment, done);
  addApplyCommand(program, environment, done);
  addConfirmCommand(program, environment, done);
  addRollbackCommand(program, environment, done);
  addVerifyCommand(program, environment, done);
  addDumpCommand(program, environment, done);
  addCleanupCommand(program, environment, done);
  addWatchCommand(program, environment, done);
  if (argv.length === 0) {
    program.outputHelp({ error: true });
    await Promise.all(written);
    return exitStatus.badInput;
  }
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    const failure = explainError(error);
    if (failure) status = await reportFailure(failure, terminal);
    // Help and version end by an "error" of status 0.
    else if (error instanceof CommanderError) status = error.exitCode === 0 ? exitStatus.ok : exitStatus.badInput;
    else throw error;
  }
  await Promise.all(written);
  return status;
}
