import { formatCount } from '../base/format-count.ts';
import type { Owners } from '../changes/owners.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { DecompiledPort } from './decompile.ts';
import type { DescriptionLine } from './describe-words.ts';
import { cutLines } from './describe-words.ts';
import { bareName, parseRuleLine } from './find-subject.ts';

/**
 * The name of the Service port that a chain, or a line of iptables-save, belongs to, or the address of a set's entry; else
 * the text itself.
 */
export function resolveName(what: string, owners: Owners): string {
  const parsed = parseRuleLine(what);
  const chain = parsed?.chain ?? { name: what, rules: [] };
  const bare = bareName(what);
  return (parsed && owners.ofRule(parsed.rule)) ?? owners.ofChain(chain) ?? owners.ofNftChain({ name: bare }) ?? bare;
}

/** Whether a text names the port: its name or a part of it, an address, its node port, or an endpoint. */
export function isAbout(port: DecompiledPort, what: string): boolean {
  const service = port.name.replace(/:[^/:]*$/, '');
  const asked = what.replace(/\/(tcp|udp|sctp)$/i, (protocol) => protocol.toUpperCase());
  return (
    [port.name, service, service.replace(/^.*\//, '')].includes(what) ||
    (port.nodePort !== undefined && [`${port.nodePort}`, `${port.nodePort}/${port.protocol}`].includes(asked)) ||
    port.addresses.some(({ address }) => {
      const withPort = port.port === undefined ? address : joinHostPort(address, port.port);
      return (
        address === what || withPort === what || `${withPort}/${port.protocol}`.toLowerCase() === what.toLowerCase()
      );
    }) ||
    (port.endpoints ?? []).some(({ endpoint }) => endpoint === what || endpoint.replace(/:\d+$/, '') === what)
  );
}

const addressWords = {
  'cluster-ip': 'cluster IP',
  'external-ip': 'external IP',
  'load-balancer-ip': 'load balancer address',
  unknown: 'address',
} as const;

/** A Service port of a dump, as far as the state tells. */
export function describeDecompiled(port: DecompiledPort, limit: number): readonly DescriptionLine[] {
  const line = (depth: number, text: string): DescriptionLine => ({
    role: depth === 0 ? 'heading' : 'plain',
    depth,
    text,
  });
  const policies = [
    ...(port.internalTrafficPolicy === undefined ? [] : [`internalTrafficPolicy ${port.internalTrafficPolicy}`]),
    ...(port.externalTrafficPolicy === undefined ? [] : [`externalTrafficPolicy ${port.externalTrafficPolicy}`]),
    ...(port.affinitySeconds === undefined ? [] : [`session affinity by client for ${port.affinitySeconds} s`]),
    ...(port.scheduler === undefined ? [] : [`scheduler ${port.scheduler}`]),
    ...(port.sourceRanges.length === 0 ? [] : [`for ${port.sourceRanges.join(', ')} only`]),
    ...(port.healthCheckNodePort === undefined ? [] : [`health check node port ${port.healthCheckNodePort}`]),
  ];
  const endpoints = (port.endpoints ?? []).map(({ endpoint, takes }) =>
    line(2, takes.length === 0 ? endpoint : `${endpoint}  for policy ${takes.join(' and ')}`),
  );
  return [
    line(0, port.name),
    ...port.addresses.map(({ kind, address }) =>
      line(1, `${addressWords[kind]} ${address} port ${port.port}/${port.protocol}`),
    ),
    ...(port.nodePort === undefined ? [] : [line(1, `node port ${port.nodePort}/${port.protocol}`)]),
    ...(policies.length > 0 ? [line(1, policies.join(', '))] : []),
    line(1, headEndpoints(port)),
    ...cutLines(endpoints, limit, 2),
  ];
}

function headEndpoints({ endpoints, internalTrafficPolicy, scheduler }: DecompiledPort): string {
  if (endpoints === undefined) {
    const ofServers = scheduler === undefined ? 'the virtual servers' : 'the real servers';
    const lacking = internalTrafficPolicy === undefined ? ofServers : 'all the chains that lead to them';
    return `endpoints: unknown, because the dump does not show ${lacking}`;
  }
  return endpoints.length === 0 ? 'no endpoints' : `endpoints (${formatCount(endpoints.length)})`;
}
