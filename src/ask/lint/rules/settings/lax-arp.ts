import { programs } from '../../../../kube-proxy/modes.ts';
import type { LintRule } from '../../rule.ts';

/** Kinds of objects that make a program announce load balancer addresses by ARP. */
const announcers: Readonly<Record<string, string>> = {
  L2Advertisement: 'MetalLB (L2Advertisement)',
  CiliumL2AnnouncementPolicy: 'Cilium (CiliumL2AnnouncementPolicy)',
};

/** Finds load balancer addresses for which every node answers ARP, because each node has them on kube-ipvs0. */
export const laxARP: LintRule<'lax-arp'> = {
  check: ({ loaded: { settings, inputs } }) => {
    if (!programs(settings.mode, 'links') || settings.ipvs.strictARP) return [];
    const [, by] = Object.entries(announcers).find(([kind]) => inputs.skipped.has(kind)) ?? [];
    return by === undefined ? [] : [{ details: { by }, place: inputs.configs[0]?.source.place(['ipvs', 'strictARP']) }];
  },
};
