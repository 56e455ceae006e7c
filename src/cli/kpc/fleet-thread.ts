import { runThread, threadCommand } from '../../library/node/fleet.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';

/** Run by the threads of --jobs. */
export const addThreadCommand = defineCommand({
  name: threadCommand,
  isHidden: true,
  run: async () => {
    await runThread();
    return exitStatus.ok;
  },
});
