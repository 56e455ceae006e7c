import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Tests of what another user can do to root need root. */
export const runsAsRoot = process.platform === 'linux' && process.getuid?.() === 0;

/** "nobody", who exists everywhere. */
export const otherUser = 65534;

/** Runs a program of Perl as another user until it is ended. Returns when it has printed its first line. */
export async function runAsOther(program: string, ...args: readonly string[]): Promise<ChildProcess> {
  const child = spawn('setpriv', [`--reuid=${otherUser}`, '--clear-groups', 'perl', '-e', program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}
