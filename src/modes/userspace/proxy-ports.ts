import { hashHex } from '#hash';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import type { Cluster, ServicePort } from '../../cluster/model.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { isLoopback, parseAddress } from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';
import { familyNames } from '../../kernel/family.ts';
import type { PortRange } from '../../kernel/ports-and-marks.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';

/** Above the usual node ports, and above Linux's ports for outgoing connections (net.ipv4.ip_local_port_range). */
const usualRange: PortRange = { first: 61000, last: 65535 };

/** Whether kube-proxy in userspace mode serves a Service port: only IPv4 with TCP or UDP. */
export function isServed({ family, protocol }: Pick<ServicePort, 'family' | 'protocol'>): boolean {
  const { families, protocols } = modeFacts.userspace;
  return families.includes(family) && protocols.includes(protocol);
}

/**
 * The proxy port of each Service port, by label. kube-proxy takes a random free one (port_allocator.go); kpc derives one from the
 * name, or takes the next that no Service port before it in name order has. A Service port that finds none has none.
 */
export function assignProxyPorts(
  { servicePorts }: Pick<Cluster, 'servicePorts'>,
  { first, last }: PortRange = usualRange,
): ReadonlyMap<string, number> {
  const labels = [...new Set(servicePorts.filter(isServed).map(({ label }) => label))].sort(compareText);
  const size = last - first + 1;
  // By taken offset, one that may be free: a crowded range is not searched from the start each time.
  const next = new Map<number, number>();
  const assigned = new Map<string, number>();
  for (const label of labels.slice(0, size)) {
    const wanted = Number.parseInt(hashHex(label).slice(0, 8), 16) % size;
    let offset = wanted;
    const passed: number[] = [];
    for (let hop = next.get(offset); hop !== undefined; hop = next.get(offset)) {
      passed.push(offset);
      offset = hop;
    }
    for (const each of [...passed, offset]) next.set(each, (offset + 1) % size);
    assigned.set(label, first + offset);
  }
  return assigned;
}

/** Reports settings that kube-proxy in userspace mode does not have, and Service ports that it does not serve. */
export function checkProxyPorts(
  { servicePorts }: Pick<Cluster, 'servicePorts'>,
  { portRange: { first, last } = usualRange, bindAddress }: ProxySettings,
): readonly Finding[] {
  const bind = parseAddress(bindAddress);
  const served = new Set(servicePorts.filter(isServed).map(({ label }) => label)).size;
  const left = servicePorts.filter((port) => !isServed(port));
  const labels = [
    ...new Set(
      left.map(({ label, protocol, family }) => `${label} (${family === 'ipv4' ? protocol : familyNames[family]})`),
    ),
  ];
  const size = last - first + 1;
  return [
    ...(bind && (isLoopback(bind) || bind.family !== 'ipv4')
      ? [diagnose('userspace', { problem: 'bind-address', flag: '--bind-address', address: bind.text })]
      : []),
    ...(served > size
      ? [diagnose('userspace', { problem: 'few-ports', flag: '--proxy-port-range', served, size })]
      : []),
    ...(labels.length > 0 ? [diagnose('userspace', { problem: 'unserved', labels }, left[0]?.places?.port)] : []),
  ];
}
