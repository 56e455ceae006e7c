import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

export const runsAsRoot = process.platform === 'linux' && process.getuid?.() === 0;

export const otherUser = 65534;

/** Runs a Perl program as another user, and returns once it has printed its first line. The program keeps running. */
export async function runAsOther(program: string, ...args: readonly string[]): Promise<ChildProcess> {
  const child = spawn('setpriv', [`--reuid=${otherUser}`, '--clear-groups', 'perl', '-e', program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}
