import type { Flag } from './flag.ts';
import { listSettings, type ProxyFlags } from './table.ts';

/** The flags of all settings, in the order in which help lists them. Several settings may have one flag. */
export const proxyFlags: readonly Flag[] = [...new Set(listSettings().flatMap(({ row }) => row.flags))].sort(
  (a, b) => a.rank - b.rank,
);

/** Whether the user gave any of kube-proxy's flags. These say how kube-proxy is set up. */
export function hasProxyFlags(options: ProxyFlags): boolean {
  return proxyFlags.some(({ key }) => options[key as keyof ProxyFlags] !== undefined);
}
