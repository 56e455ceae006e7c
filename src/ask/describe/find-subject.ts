import { mostSuggestions, nearest } from '../../base/names.ts';
import type { NoSubject, SubjectHint } from '../../base/findings/command-line.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { portAddresses, serviceName, servicePortLabel, type ServiceInfo, type ShownPort } from '../../cluster/model.ts';
import { addressesOfPod, fullName, type Pod, type Sourced } from '../../cluster/objects.ts';
import type { CompiledSnapshot, DumpedSnapshot, Snapshot } from '../../snapshot/snapshot.ts';
import { parseAddress } from '../../kernel/address.ts';
import { findHealthCheckSets } from '../../kube-proxy/ipvs-objects.ts';
import { endpointOn, PortDraft, type DecompiledPort } from '../../snapshot/decompiled-port.ts';
import { describeSet, findItems, modeOfName, type SharedSubject } from './find-items.ts';
import {
  bareName,
  headlessServices,
  hostInDns,
  hostOf,
  parseAsked,
  readPodName,
  type Asked,
  type AskedAddress,
} from './parse-asked.ts';
import {
  nodeOfDump,
  claimedAt,
  findPorts,
  explainUnanswered,
  findOnNodes,
  whyUnprogrammed,
  type Because,
  type PortMatch,
  type AskedNode,
} from './find-ports.ts';

export type FoundSubject =
  | { readonly kind: 'services'; readonly matches: readonly ServiceMatch[] }
  | { readonly kind: 'shared'; readonly subjects: readonly SharedSubject[] }
  | { readonly kind: 'nothing'; readonly why: NoSubject };

interface ServiceMatch {
  readonly service: ServiceInfo;
  readonly labels: ReadonlySet<string>;
  readonly because: readonly Because[];
}

interface Searched<P extends ShownPort> {
  readonly ports: readonly P[];
  readonly node: AskedNode;
  readonly labelOfChain?: (chain: string) => string | undefined;
}

/** What a text refers to: Service ports or, if there are none, chains and sets that belong to all Service ports or to none. */
interface FoundSubjects<P extends ShownPort> {
  readonly asked: Asked;
  readonly matches: readonly PortMatch<P>[];
  readonly subjects: readonly SharedSubject[];
  readonly unanswered: NoSubject | undefined;
}

/**
 * Finds what a text refers to: a line of iptables-save, a chain, a set or one of its entries, an address with or without a port, a node
 * port, or a Service by name ("name", "namespace/name", either with ":port") or DNS name.
 */
function findAsked<P extends ShownPort>(
  text: string,
  side: Snapshot,
  { ports, node, labelOfChain }: Searched<P>,
): FoundSubjects<P> {
  const what = bareName(text.trim());
  const { owner, subjects = [] } = findItems(what, side) ?? {};
  const label = owner?.label ?? labelOfChain?.(what);
  const asked = parseAsked(label ?? what);
  const because = owner?.role ?? { kind: 'name' };
  const owned = ports.filter((port) => port.label === label).map((port) => ({ port, because }));
  return {
    asked,
    matches: owned.length > 0 ? owned : findPorts(ports, asked, node),
    subjects,
    unanswered: asked.address && explainUnanswered(ports, asked.address, node),
  };
}

export function findSubject(text: string, view: CompiledSnapshot): FoundSubject {
  const { cluster, node } = view;
  const isOwn: AskedNode['isOwn'] = (own) => node.hostAddresses.some((each) => each.text === own.text);
  const known = {
    ports: [...cluster.servicePorts, ...cluster.services.flatMap(portsNotProgrammed)],
    node: { isOwn, listeners: view.listeners },
  };
  const { asked, subjects, unanswered, ...found } = findAsked(text, view, known);
  const pods = findPods(asked, view.objects.pods);
  const addresses = [
    ...pods.flatMap(({ object }) => addressesOfPod(object)),
    ...addressesInDns(asked.text, cluster.services),
  ];
  const matches =
    found.matches.length > 0 ? found.matches : addresses.flatMap((each) => findAsked(each, view, known).matches);
  if (matches.length > 0) {
    const byService = groupBy(matches, ({ port }) => serviceName(port));
    const services = cluster.services.flatMap((service): readonly ServiceMatch[] => {
      const own = byService.get(fullName(service)) ?? [];
      const because = new Map(own.map((each) => [JSON.stringify(each.because), each.because]));
      const labels = new Set(own.map(({ port }) => port.label));
      return own.length === 0 ? [] : [{ service, labels, because: [...because.values()] }];
    });
    return { kind: 'services', matches: services };
  }
  if (subjects.length > 0) return { kind: 'shared', subjects };
  const unserved = asked.address && whyUnprogrammed(asked.address, view);
  // For a node port on another node, `unserved` is the better reason. `unanswered` names the ports of an endpoint on the host network.
  const isOnNodes = asked.address && findOnNodes(asked.address, known.ports) !== undefined;
  const reason = isOnNodes ? (unserved ?? unanswered) : (unanswered ?? unserved);
  const noMatch = { kind: 'no-match', of: 'input', text: asked.text, hint: hintOn(asked, view) } as const;
  return { kind: 'nothing', why: reason ?? explainIdle(pods) ?? noMatch };
}

function findPods({ text, address }: Asked, pods: readonly Sourced<Pod>[]): readonly Sourced<Pod>[] {
  const name = readPodName(text);
  return pods.filter((pod) => {
    const { metadata } = pod.object;
    if (address) return addressesOfPod(pod.object).includes(address.address.text);
    return name !== undefined && (metadata.name === name || fullName(metadata) === name);
  });
}

function addressesInDns(text: string, services: readonly ServiceInfo[]): readonly string[] {
  const asked = hostInDns(text);
  const headless = asked ? headlessServices(asked, services) : [];
  return headless.flatMap(({ headlessEndpoints }) =>
    headlessEndpoints.filter((each) => hostOf(each) === asked?.host).map(({ address }) => address),
  );
}

function explainIdle(pods: readonly Sourced<Pod>[]): NoSubject | undefined {
  if (pods.length === 0) return undefined;
  const idle = pods.map((pod) => ({ name: fullName(pod.object.metadata), address: addressesOfPod(pod.object)[0] }));
  return { kind: 'idle-pods', pods: idle };
}

/** Returns the ports of a Service that kube-proxy does not program, including a headless Service whose endpoints have no ports. */
function portsNotProgrammed(service: ServiceInfo): readonly ShownPort[] {
  const { namespace, name, skipped, ports, headlessEndpoints } = service;
  if (skipped === undefined) return [];
  const own = ports.length > 0 ? ports : [{ name: '', port: undefined, protocol: 'TCP' as const }];
  const endpoints = headlessEndpoints.flatMap(({ address: text }) => {
    const address = parseAddress(text);
    return address ? [{ ...endpointOn(address), status: undefined }] : [];
  });
  return own.map(({ name: portName, port, protocol }) => {
    const draft = new PortDraft(servicePortLabel(namespace, name, portName), 'ipv4', protocol);
    return { ...draft.finish(), port, endpoints };
  });
}

/** What a text refers to in a dump: Service ports, even if only the rules of another mode show them, or else chains and sets. */
type FoundInDump =
  | {
      readonly kind: 'found';
      readonly ports: readonly DecompiledPort[];
      readonly subjects: readonly SharedSubject[] | undefined;
    }
  | { readonly kind: 'nothing'; readonly why: NoSubject };

export function findInDump(text: string, dump: DumpedSnapshot): FoundInDump {
  const { owners, state, shown } = dump;
  const node = nodeOfDump(state, dump.coverage);
  const { asked, matches, ...found } = findAsked(text, dump, {
    ports: [...shown.ports, ...shown.leftovers.ports],
    node,
    labelOfChain: (name) => owners.ofChain({ name, rules: [] }) ?? owners.ofNftChain({ name }),
  });
  if (matches.length > 0) return { kind: 'found', ports: matches.map(({ port }) => port), subjects: undefined };
  const subjects = [...found.subjects, ...healthCheckSets(asked, dump)];
  if (subjects.length > 0) return { kind: 'found', ports: [], subjects };
  const written = findPorts(dump.namedPorts, asked, node).flatMap(({ port }) => socketOf(port) ?? []);
  const address = asked.address ?? written[0];
  const claimed = address && claimedAt(address, dump);
  const unreached = claimed && ({ kind: 'unreached-address', address: address.address.text, ...claimed } as const);
  const noMatch = { kind: 'no-match', of: 'dump', text, hint: undefined } as const;
  return { kind: 'nothing', why: unreached ?? found.unanswered ?? noMatch };
}

function socketOf(shown: ShownPort): AskedAddress | undefined {
  const [first] = portAddresses(shown);
  return first && { address: first.address, port: shown.port, protocol: shown.protocol };
}

function healthCheckSets({ number }: Asked, dump: DumpedSnapshot): readonly SharedSubject[] {
  if (!number || (number.protocol ?? 'TCP') !== 'TCP') return [];
  return findHealthCheckSets(dump.state, number.port).map((set) => describeSet(set, dump));
}

function hintOn({ text, address, names }: Asked, view: CompiledSnapshot): SubjectHint | undefined {
  const { mode } = view.settings;
  const maker = modeOfName(text);
  if (maker !== undefined && maker !== mode) return { kind: 'other-mode', mode, maker };
  const suggestions = address ? [] : suggestServices(names.at(-1)?.name ?? text, view.cluster.services);
  return suggestions.length === 0 ? undefined : { kind: 'near', names: suggestions };
}

/** Suggests the ports of Services with exactly this name, or else Services with this name in other namespaces or similar names. */
function suggestServices(named: string, services: readonly ServiceInfo[]): readonly string[] {
  const known = services.filter((service) => service.name === named || fullName(service) === named);
  if (known.length > 0) {
    return known
      .slice(0, mostSuggestions)
      .flatMap((service) => service.ports.map(({ name, port }) => `${fullName(service)}:${name || port}`));
  }
  const bare = named.slice(named.indexOf('/') + 1);
  const all = new Set(services.map(({ name }) => name));
  const near = all.has(bare) ? [bare] : nearest(bare, [...all]);
  return services.flatMap((each) => (near.includes(each.name) ? [fullName(each)] : [])).slice(0, mostSuggestions);
}
