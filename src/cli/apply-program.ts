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
import type { ExitStatus } from './exit-status.ts';
import { runCommands, type Program } from './run-commands.ts';

/** Runs the command of kpc-apply that the command line names. */
export function runApplyProgram(argv: readonly string[], environment: ApplyEnvironment): Promise<ExitStatus> {
  const program: Program = {
    name: 'kpc-apply',
    description: 'Puts a bundle that kpc compiled into the kernel of this node, and keeps it there.',
    addCommands: (command, done) => {
      addDoctorCommand(command, environment, done);
      addPlanCommand(command, environment, done);
      addApplyCommand(command, environment, done);
      addConfirmCommand(command, environment, done);
      addRollbackCommand(command, environment, done);
      addVerifyCommand(command, environment, done);
      addDumpCommand(command, environment, done);
      addCleanupCommand(command, environment, done);
      addWatchCommand(command, environment, done);
    },
    explain: (error) => {
      const failure = explainError(error);
      return failure && reportFailure(failure, environment.terminal);
    },
  };
  return runCommands(program, argv, environment.terminal);
}
