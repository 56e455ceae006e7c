import { Failure } from './failure.ts';
import type { Host } from './host.ts';
import { isRoots } from './rights.ts';

/** The id of a kube-proxy's process. Looks at one process after the other: they may be more than files may be open. */
export async function findKubeProxy(host: Host): Promise<string | undefined> {
  const own = await host.readLink('/proc/self/ns/net');
  for (const pid of await host.list('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const name = await host.readFile(`/proc/${pid}/comm`);
    if (name?.trim() !== 'kube-proxy' || !(await isRoots(host, pid))) continue;
    const network = await host.readLink(`/proc/${pid}/ns/net`);
    // One in the network of a container (a node of a test cluster, say) is no matter of this one.
    if (network === undefined || network === own) return pid;
  }
  return undefined;
}

/** Throws a Failure where a kube-proxy runs on this node: what it made must not be taken from under it. */
export async function assertNoKubeProxy(host: Host): Promise<void> {
  const pid = await findKubeProxy(host);
  if (pid === undefined) return;
  throw new Failure(
    'not-ready',
    `kube-proxy is running (process ${pid}): its rules have the same names as kpc-apply's, so they would be removed too`,
    'stop it first, or leave the node to it; --force continues anyway',
  );
}
