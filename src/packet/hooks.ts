import type { TableName } from '../kernel/iptables/iptables.ts';

/** The points of the kernel's network stack where rules see packets. */
export const hooks = ['prerouting', 'input', 'forward', 'output', 'postrouting'] as const;

export type Hook = (typeof hooks)[number];

/** What sees packets at a hook, lower priorities first (linux/netfilter_ipv4.h). */
interface Station {
  readonly hook: Hook;
  readonly priority: number;
}

/** Where connection tracking begins: what is below sees packets without a connection. */
export const trackingPriority = -200;

function stations(priority: number, ...at: readonly Hook[]): readonly Station[] {
  return at.map((hook) => ({ hook, priority }));
}

/**
 * Where chains of type nat see packets, whatever their own priority: that orders them among themselves. On the way in they
 * decide a connection's destination, on the way out its source, each once.
 */
export const natStations: { readonly [H in Hook]?: { readonly priority: number; readonly decides: NatHalf } } = {
  prerouting: { priority: -100, decides: 'destination' },
  output: { priority: -100, decides: 'destination' },
  input: { priority: 100, decides: 'source' },
  postrouting: { priority: 100, decides: 'source' },
};

export type NatHalf = 'destination' | 'source';

/** Where each table of iptables sees packets. */
export const tableStations: { readonly [T in TableName]: readonly Station[] } = {
  raw: stations(-300, 'prerouting', 'output'),
  mangle: stations(-150, ...hooks),
  nat: [...stations(-100, 'prerouting', 'output'), ...stations(100, 'input', 'postrouting')],
  filter: stations(0, 'input', 'forward', 'output'),
  security: stations(50, 'input', 'forward', 'output'),
};

/** Where IPVS takes packets to its virtual servers (ip_vs_ops4 in ip_vs_core.c): after filter on the way in. */
export const ipvsStations: readonly Station[] = [...stations(99, 'input'), ...stations(-98, 'output')];
