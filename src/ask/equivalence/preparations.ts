import { diagnose, type Finding } from '../../base/findings/finding.ts';
import type { PreparationArguments } from '../../base/findings/equivalence.ts';
import { addressesOn } from '../../kernel/link/link.ts';
import { forwardingSysctls } from '../../kernel/sysctls-and-modules.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import { nodeAddresses } from '../../cluster/node-context.ts';
import type { Node } from '../../cluster/objects.ts';
import type { Scene } from '../trace/scene.ts';

export function preparationsFor(from: Scene, to: Scene): readonly Finding[] {
  const steps = [...(from.side.mode === to.side.mode ? [] : modeNeeds(from, to)), ...settingsLost(from, to)];
  return steps.map(diagnosePreparation);
}

export function diagnosePreparation(details: PreparationArguments): Finding {
  return diagnose('preparation', details);
}

type Steps = readonly PreparationArguments[];

function modeNeeds(from: Scene, to: Scene): Steps {
  const nodes = to.side.objects.nodes.map(({ object }) => object);
  return [
    ...(from.side.mode && modeFacts[from.side.mode].kinds.has('links') ? answersLost(from, to) : []),
    ...((to.side.mode && neededBy[to.side.mode]?.(nodes)) ?? []),
    ...((from.side.mode && leftBehindBy[from.side.mode]?.(from, to)) ?? []),
  ];
}

const neededBy: { readonly [M in ProxyMode]?: (nodes: readonly Node[]) => Steps } = {
  nftables: (nodes) => [...kernelsNeeded(nodes), { step: 'nft-version' }, { step: 'kube-proxy-version' }],
};

/** The oldest kernel on which kube-proxy starts in nftables mode (nftables/proxier.go). */
const oldestKernel = [5, 13] as const;

function kernelsNeeded(nodes: readonly Node[]): Steps {
  const known = nodes.map(({ metadata: { name }, kernelVersion = '' }) => {
    const [, major, minor] = /^(\d{1,4})\.(\d{1,4})/.exec(kernelVersion) ?? [];
    const isOld =
      major !== undefined &&
      (Number(major) < oldestKernel[0] || (Number(major) === oldestKernel[0] && Number(minor) < oldestKernel[1]));
    return { name, kernelVersion, isOld, isKnown: major !== undefined };
  });
  const old = known.filter(({ isOld }) => isOld).map(({ name, kernelVersion }) => `${name} (${kernelVersion})`);
  if (old.length === 0 && known.length > 0 && known.every(({ isKnown }) => isKnown)) return [];
  return [{ step: 'kernel', oldest: oldestKernel.join('.'), nodes: old }];
}

const leftBehindBy: { readonly [M in ProxyMode]?: (from: Scene, to: Scene) => Steps } = {
  ipvs: ipvsLeft,
};

/**
 * Lists addresses for which nodes answer ARP requests only in IPVS mode, because kube-ipvs0 has these addresses. Linux answers on any link
 * for the addresses of all links, unless strictARP forbids it. With IPv6, a link answers only for its own addresses. A Node's own address
 * is not lost.
 */
function answersLost(from: Scene, { side: { mode: to } }: Scene): Steps {
  const { side } = from;
  if (side.kind === 'dump' || side.settings.ipvs.strictARP) return [];
  const ofNodes = side.objects.nodes.flatMap(({ object }) => nodeAddresses(object).map(({ text }) => text));
  const own = new Set([...addressesOn(from.links), ...ofNodes]);
  const listAddresses = (kind: 'externalIPs' | 'loadBalancerIPs'): readonly string[] => {
    const all = side.cluster.servicePorts.flatMap((port) => port[kind]);
    return [...new Set(all.filter(({ family, text }) => family === 'ipv4' && !own.has(text)).map(({ text }) => text))];
  };
  const rows = [
    { step: 'announce-external-ips', addresses: listAddresses('externalIPs'), to },
    { step: 'announce-load-balancer-ips', addresses: listAddresses('loadBalancerIPs'), to },
  ] as const;
  return rows.filter(({ addresses }) => addresses.length > 0);
}

function settingsLost({ side: { settings: before, ports } }: Scene, { side: { settings: after } }: Scene): Steps {
  if (!before || !after) return [];
  const modes = { from: before.mode, to: after.mode };
  const rows = (['masqueradeAll', 'masqueradeBit'] as const)
    .filter((name) => before[name] !== after[name])
    .map((name) => ({ step: 'masquerade-setting', ...modes, name, value: String(before[name]) }) as const);
  const [was = '', is = ''] = [before, after].map(({ nodePortAddresses }) => nodePortAddresses.join(', ') || 'all');
  if (was === is || ports.every(({ nodePort }) => !nodePort)) return rows;
  return [...rows, { step: 'node-port-addresses', ...modes, was, is }];
}

function ipvsLeft({ side }: Scene, { side: { mode: to } }: Scene): Steps {
  const rows: PreparationArguments[] = side.families.map((family) => {
    const sysctl = forwardingSysctls[family];
    return { step: 'forwarding', sysctl, isSetBefore: modeFacts.ipvs.sysctls.includes(sysctl), to };
  });
  if (side.kind === 'dump') return rows;
  const { ipvs } = side.settings;
  const annotated = side.cluster.servicePorts.flatMap(({ scheduler }) => scheduler || []);
  rows.push({ step: 'scheduler', schedulers: [...new Set([ipvs.scheduler, ...annotated])], to });
  const seconds = [ipvs.tcpTimeout, ipvs.tcpFinTimeout, ipvs.udpTimeout];
  if (seconds.some((each) => each > 0)) rows.push({ step: 'timeouts', seconds });
  const addresses = side.state.links.find(({ name }) => name === serviceLink)?.addresses.length ?? 0;
  if (addresses > 0) rows.push({ step: 'bound-addresses', addresses, to });
  const [address] = side.cluster.servicePorts.map((port) => port.clusterIP.text);
  if (address !== undefined) rows.push({ step: 'route', address, to });
  if (ipvs.strictARP) rows.push({ step: 'strict-arp' });
  if (ipvs.excludeCIDRs.length > 0)
    rows.push({ step: 'excluded-networks', networks: ipvs.excludeCIDRs.map(String), to });
  return rows;
}
