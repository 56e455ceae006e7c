import type { KernelDelta } from '../kernel/delta.ts';
import { joinHostPort } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import type { Rule, RuleArg } from '../kernel/iptables.ts';
import type { ChainChange } from '../kernel/iptables-delta.ts';
import { formatRule } from '../kernel/iptables.ts';
import type { SetChange } from '../kernel/ipset-delta.ts';
import { virtualServerKey, type VirtualServerChange } from '../kernel/ipvs-delta.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs.ts';
import type { LinkChange } from '../kernel/link-delta.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { isServiceChainName } from '../kube-proxy/chains.ts';
import { describeServer } from './ownership.ts';
import type { Plan } from './plan.ts';
import type { DrainingServer } from './record.ts';

/** The Service ports of a bundle. */
type ServicePorts = StoredBundle['cluster']['servicePorts'];

/** One change of a plan, for people and for programs. */
export interface PlannedChange {
  /** "namespace/name:port" of the bundle, or as rules' comments have it; undefined where no Service is to be named. */
  readonly service: string | undefined;
  readonly action: 'add' | 'change' | 'remove';
  readonly object:
    | 'module'
    | 'setting'
    | 'ipvs timeouts'
    | 'set'
    | 'set entry'
    | 'chain'
    | 'rule'
    | 'virtual server'
    | 'real server'
    | 'link'
    | 'address';
  readonly text: string;
}

/** All changes of a plan, in the order of steps, each with its Service where that can be told. */
export function describePlan(plan: Plan, servicePorts: ServicePorts): readonly PlannedChange[] {
  const services = indexServices(servicePorts);
  const { delta } = plan;
  return [
    ...plan.modules.map((module): PlannedChange => ({ ...general('add', 'module'), text: module })),
    ...plan.settings.map(({ setting, from }): PlannedChange => {
      const reason = setting.reason === undefined ? '' : ` (${setting.reason})`;
      return {
        ...general('change', 'setting'),
        text: `${setting.name}: ${from ?? 'unset'} → ${setting.value}${reason}`,
      };
    }),
    ...describeTimeouts(delta),
    ...delta.sets.flatMap((change) => describeSetChange(change, services)),
    ...families.flatMap((family) => describeTables(delta, family)),
    ...delta.virtualServers.map((change) => describeServerChange(change, services)),
    ...delta.links.flatMap((change) => describeLinkChange(change, services)),
  ];
}

function general(action: PlannedChange['action'], object: PlannedChange['object']): Omit<PlannedChange, 'text'> {
  return { service: undefined, action, object };
}

/** Where a Service port of the bundle can be met in the kernel. */
interface ServiceIndex {
  /** "TCP 10.96.0.1 80" → label. */
  readonly bySocket: ReadonlyMap<string, string>;
  /** "TCP 30080" → label. */
  readonly byNodePort: ReadonlyMap<string, string>;
  readonly byAddress: ReadonlyMap<string, string>;
}

function indexServices(servicePorts: ServicePorts): ServiceIndex {
  const bySocket = new Map<string, string>();
  const byNodePort = new Map<string, string>();
  const byAddress = new Map<string, string>();
  for (const {
    clusterIP,
    externalIPs,
    loadBalancerIPs,
    protocol,
    port,
    nodePort,
    label,
    namespace,
    service,
  } of servicePorts) {
    for (const { text } of [clusterIP, ...externalIPs, ...loadBalancerIPs]) {
      bySocket.set(virtualServerKey({ protocol, address: text, port }), label);
      byAddress.set(text, `${namespace}/${service}`);
    }
    if (nodePort !== 0) byNodePort.set(`${protocol} ${nodePort}`, label);
  }
  return { bySocket, byNodePort, byAddress };
}

function describeTimeouts(delta: KernelDelta): readonly PlannedChange[] {
  if (!delta.ipvsTimeouts) return [];
  const { from, to } = delta.ipvsTimeouts;
  const text = (['tcp', 'tcpFin', 'udp'] as const)
    .filter((name) => to[name] !== 0 && to[name] !== from[name])
    .map((name) => `${name} ${from[name]} s → ${to[name]} s`)
    .join(', ');
  return [{ ...general('change', 'ipvs timeouts'), text }];
}

function describeSetChange(change: SetChange, services: ServiceIndex): readonly PlannedChange[] {
  switch (change.kind) {
    case 'create-set':
      return [
        { ...general('add', 'set'), text: `${change.set.name} (${change.set.type})` },
        ...change.set.entries.map(({ value }) => describeEntry('add', change.set.name, value, services)),
      ];
    case 'change-entries':
      return [
        ...change.removed.map(({ value }) => describeEntry('remove', change.set.name, value, services)),
        ...change.added.map(({ value }) => describeEntry('add', change.set.name, value, services)),
      ];
    case 'replace-set':
      return [{ ...general('change', 'set'), text: `${change.to.name}: ${change.from.type} → ${change.to.type}` }];
    case 'destroy-set':
      return [{ ...general('remove', 'set'), text: change.set.name }];
    default:
      return change satisfies never;
  }
}

function describeEntry(action: 'add' | 'remove', set: string, value: string, services: ServiceIndex): PlannedChange {
  return { service: findServiceOfEntry(set, value, services), action, object: 'set entry', text: `${set} ${value}` };
}

/** "10.96.0.1,tcp:80", the same with a client's address after it, "30080" in a set of node ports. */
function findServiceOfEntry(set: string, value: string, services: ServiceIndex): string | undefined {
  const nodePort = /NODE-PORT.*-(TCP|UDP|SCTP)/.exec(set)?.[1];
  if (nodePort !== undefined) return services.byNodePort.get(`${nodePort} ${value.slice(value.lastIndexOf(':') + 1)}`);
  const socket = /^([^,]+),(tcp|udp|sctp):(\d+)/.exec(value);
  if (!socket) return services.byAddress.get(value);
  const [, address, protocol, port] = socket;
  return services.bySocket.get(`${protocol?.toUpperCase()} ${address} ${port}`);
}

function describeTables(delta: KernelDelta, family: Family): readonly PlannedChange[] {
  return (delta.iptables[family] ?? []).flatMap(({ table, changes }) =>
    changes.map((change) => describeChainChange(change, `${family} ${table}`)),
  );
}

function describeChainChange(change: ChainChange, where: string): PlannedChange {
  switch (change.kind) {
    case 'write-chain': {
      const action = change.from ? 'change' : 'add';
      const text = `${where} ${change.chain.name}, ${count(change.chain.rules.length, 'rule')}`;
      return { service: findServiceOfChain(change.chain.name, change.chain.rules), action, object: 'chain', text };
    }
    case 'delete-chain': {
      const service = findServiceOfChain(change.chain.name, change.chain.rules);
      return { service, action: 'remove', object: 'chain', text: `${where} ${change.chain.name}` };
    }
    case 'delete-rule':
      return { ...general('remove', 'rule'), text: `${where} ${change.chain} ${formatRule(change.rule)}` };
    case 'insert-rule':
      return { ...general('add', 'rule'), text: `${where} ${change.chain} ${formatRule(change.rule)}` };
    default:
      return change satisfies never;
  }
}

/** A Service's own chain says whose it is in its rules' comments: "default/web:http -> 10.1.1.10:80". */
function findServiceOfChain(name: string, rules: readonly Rule[]): string | undefined {
  if (!isServiceChainName(name)) return undefined;
  const comments = rules.flatMap((rule) => rule.args).filter(isComment);
  return comments
    .map(({ text }) => /(?:^|\s)([a-z0-9.-]+\/[a-z0-9.:-]+)/.exec(text)?.[1])
    .find((label) => label !== undefined);
}

function isComment(arg: RuleArg): arg is RuleArg & { readonly kind: 'comment' } {
  return arg.kind === 'comment';
}

function describeServerChange(change: VirtualServerChange, services: ServiceIndex): PlannedChange {
  const { service: server } = change;
  const service =
    services.bySocket.get(virtualServerKey(server)) ?? services.byNodePort.get(`${server.protocol} ${server.port}`);
  const name = describeServer(server);
  switch (change.kind) {
    case 'add-service': {
      const text = `${name} ${server.scheduler}, ${count(server.realServers.length, 'real server')}`;
      return { service, action: 'add', object: 'virtual server', text };
    }
    case 'edit-service':
      return {
        service,
        action: 'change',
        object: 'virtual server',
        text: `${name} ${describeOptions(change.from, server)}`,
      };
    case 'delete-service':
      return { service, action: 'remove', object: 'virtual server', text: name };
    case 'add-real-server':
      return { service, action: 'add', object: 'real server', text: `${name} → ${describeReal(change.server)}` };
    case 'edit-real-server': {
      const { from, server: to } = change;
      const drains = to.weight === 0 && from.weight !== 0 ? ', which drains' : '';
      const text = `${name} → ${describeReal(to)}: weight ${from.weight} → ${to.weight}${drains}`;
      return { service, action: 'change', object: 'real server', text };
    }
    case 'delete-real-server':
      return { service, action: 'remove', object: 'real server', text: `${name} → ${describeReal(change.server)}` };
    default:
      return change satisfies never;
  }
}

function describeReal(server: RealServer): string {
  return joinHostPort(server.address, server.port);
}

function describeOptions(from: VirtualServer, to: VirtualServer): string {
  const parts: string[] = [];
  if (from.scheduler !== to.scheduler) parts.push(`scheduler ${from.scheduler} → ${to.scheduler}`);
  if (from.persistentSeconds !== to.persistentSeconds) {
    parts.push(`affinity ${from.persistentSeconds ?? 'none'} → ${to.persistentSeconds ?? 'none'}`);
  }
  const [before, after] = [from.schedulerFlags.join(','), to.schedulerFlags.join(',')];
  if (before !== after) parts.push(`flags ${before || 'none'} → ${after || 'none'}`);
  return parts.length > 0 ? parts.join(', ') : 'other options';
}

function describeLinkChange(change: LinkChange, services: ServiceIndex): readonly PlannedChange[] {
  switch (change.kind) {
    case 'add-link':
      return [
        { ...general('add', 'link'), text: change.link.name },
        ...change.link.addresses.map(({ address }) => describeAddress('add', change.link.name, address, services)),
      ];
    case 'delete-link':
      return [{ ...general('remove', 'link'), text: change.link.name }];
    case 'add-address':
      return [describeAddress('add', change.link, change.address.address, services)];
    case 'delete-address':
      return [describeAddress('remove', change.link, change.address.address, services)];
    default:
      return change satisfies never;
  }
}

function describeAddress(
  action: 'add' | 'remove',
  link: string,
  address: string,
  services: ServiceIndex,
): PlannedChange {
  return { service: services.byAddress.get(address), action, object: 'address', text: `${address} on ${link}` };
}

function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`;
}

/** "TCP 10.96.0.1:80 → 10.1.1.1:8080", from the keys that a record has. */
export function describeDraining({ virtualServer, realServer }: DrainingServer): string {
  const [protocol = '', address = '', port] = virtualServer.split(' ');
  const [realAddress = '', realPort] = realServer.split(' ');
  return `${protocol} ${joinHostPort(address, Number(port))} → ${joinHostPort(realAddress, Number(realPort))}`;
}

/** "2 addresses stay for the connections that the node opened from them". */
export function describeHeld(addresses: readonly string[]): string {
  return addresses.length === 1
    ? '1 address stays for the connections that the node opened from it'
    : `${addresses.length} addresses stay for the connections that the node opened from them`;
}
