import type { Host } from './host.ts';

/** Bits of a process's capabilities. */
export const capNetAdmin = 1n << 12n;
export const capSysModule = 1n << 16n;

/** Whether this process has a capability. Undefined where /proc does not tell. */
export async function hasCapability(host: Host, capability: bigint): Promise<boolean | undefined> {
  const status = (await host.readFile('/proc/self/status')) ?? '';
  const capabilities = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1];
  return capabilities === undefined ? undefined : (BigInt(`0x${capabilities}`) & capability) !== 0n;
}

/**
 * Whether root runs a process. No kube-proxy can do its work for another user, but any user can call a process one, a
 * setuid program too: so the real user counts as well as the effective one.
 */
export async function isRoots(host: Host, pid: string): Promise<boolean> {
  const status = (await host.readFile(`/proc/${pid}/status`)) ?? '';
  return /^Uid:\s+0\s+0\s/m.test(status);
}

/** How to give this process the rights of root. In a container, even root may lack them. */
export async function adviseRights(host: Host): Promise<string> {
  return (await isRoots(host, 'self')) ? 'give the container the capability NET_ADMIN' : 'run it as root';
}

/** Whether a tool's message says that it lacks the rights. */
export function isRefusal(said: string): boolean {
  return /permission denied|not permitted|must be root/i.test(said);
}
