import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import type { FakeNode } from './fake-node.ts';

/** What everything throws that a process does after its death. */
class Killed extends Error {}

/** A host as one process sees it, and the end of that process. */
export interface MortalHost {
  readonly host: Host;
  /** From here on nothing happens any more that the process does, and nothing that it has begun comes back to it. */
  kill(): void;
  readonly isDead: () => boolean;
}

/** A host whose process can be killed: at any time, or in place of the first command for which `isFatal` says so. */
export function mortalHost(
  host: Host,
  isFatal: (command: ToolCommand) => boolean | Promise<boolean> = () => false,
): MortalHost {
  let dead = false;
  const live = async <T>(work: () => T): Promise<Awaited<T>> => {
    if (dead) throw new Killed();
    const result = await work();
    if (dead) throw new Killed();
    return result;
  };
  const run: Host['run'] = async (command) => {
    if (!dead && (await isFatal(command))) dead = true;
    return live(() => host.run(command));
  };
  const mortal = new Proxy(host, {
    get: (target, name: keyof Host) => {
      const value: unknown = name === 'run' ? run : target[name];
      if (typeof value !== 'function' || name === 'now' || name === 'uptime') return value;
      return (...args: readonly unknown[]) => live((): unknown => Reflect.apply(value, target, args));
    },
  });
  return { host: mortal, kill: () => void (dead = true), isDead: () => dead };
}

/** Runs kpc-apply to its end or its death, and says whether it died. */
export async function diesDuring({ host, isDead }: MortalHost, ...args: readonly string[]): Promise<boolean> {
  await callApply(host, ...args).catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error;
  });
  return isDead();
}

/** The node without the process that was on it, and with it gone its hold on the lock: as the next process sees it. */
export function heirOf({ host, files }: FakeNode): Host {
  files.delete('/proc/100/stat');
  files.set('/proc/101/stat', '101 (kpc-apply) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4712 0');
  return { ...host, pid: 101 };
}
