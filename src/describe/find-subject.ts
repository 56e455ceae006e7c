import { groupBy } from '../cluster/group-by.ts';
import type { ServiceInfo } from '../cluster/model.ts';
import type { Coverage } from '../dumps/coverage.ts';
import { families } from '../kernel/family.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { findNodePortListeners } from '../kube-proxy/node-port-listeners.ts';
import { setName } from '../kube-proxy/ipvs-sets.ts';
import { bareName, parseAsked, type Asked } from './parse-asked.ts';
import type { Decompiled } from './decompile.ts';
import type { View } from './describe-services.ts';
import { describeSet, findItems, modeOfName, type HeldState, type ItemRole, type SharedSubject } from './find-items.ts';
import {
  explainUnanswered,
  explainUnserved,
  hasOwnPort,
  nodeOfDump,
  roleOf,
  type AskedNode,
  type PortRole,
} from './find-ports.ts';
import { mostSuggestions, nearest } from '../base/find-nearest.ts';
import { shownInManifests, shownWithoutPorts, type ShownPort } from './shown-port.ts';

/** What was asked about. */
export type Finding =
  | { readonly kind: 'services'; readonly matches: readonly ServiceMatch[] }
  /** A chain or a set that Service ports share, or that every node has. */
  | { readonly kind: 'shared'; readonly subjects: readonly SharedSubject[] }
  /** `why` is a sentence. */
  | { readonly kind: 'nothing'; readonly why: string };

/** A Service that the question is about. */
interface ServiceMatch {
  readonly service: ServiceInfo;
  /** The labels of the ports that the question is about. */
  readonly labels: ReadonlySet<string>;
  readonly because: readonly Because[];
}

/** How the item in question relates to the Service port. */
export type Because = PortRole | ItemRole;

/** A Service port that the question is about. */
interface PortMatch {
  readonly port: ShownPort;
  readonly because: Because;
}

/** Finds the Service ports that the question leads to. */
function findPorts(ports: readonly ShownPort[], asked: Asked, node: AskedNode): readonly PortMatch[] {
  const matching = (why: (port: ShownPort) => Because | undefined): readonly PortMatch[] =>
    ports.flatMap((port) => {
      const because = why(port);
      return because ? [{ port, because }] : [];
    });
  const found = matching((port) => roleOf(port, asked, node));
  return found.length > 0 ? found : matching((port) => (hasOwnPort(port, asked) ? { kind: 'port' } : undefined));
}

/**
 * Finds what a text is about: a line of iptables-save, a chain, a set or an entry of one, an address with or without a
 * port, a node port, a Service by its name ("name", "namespace/name", either with ":port"), or its name in DNS.
 */
export function findSubject(text: string, view: View): Finding {
  const what = bareName(text.trim());
  const { cluster, node } = view.services;
  const items = findItems(what, view);
  if (items && !items.owner) return { kind: 'shared', subjects: items.subjects };
  const serviceOf = new Map([
    ...cluster.servicePorts.map((port) => [shownInManifests(port), `${port.namespace}/${port.service}`] as const),
    ...cluster.services.flatMap((service) =>
      shownWithoutPorts(service).map((port) => [port, labelOf(service)] as const),
    ),
  ]);
  const ports = [...serviceOf.keys()];
  const asked = parseAsked(what);
  const asNode: AskedNode = {
    isOwn: (own) => node.hostAddresses.some((each) => each.text === own.text),
    listeners: findNodePortListeners(view.state),
  };
  const { owner } = items ?? {};
  const owned = owner
    ? ports.filter(({ name }) => name === owner.label).map((port) => ({ port, because: owner.role }))
    : [];
  const found = groupBy(
    owned.length > 0 ? owned : findPorts(ports, asked, asNode),
    ({ port }) => serviceOf.get(port) ?? '',
  );
  const matches = cluster.services.flatMap((service): readonly ServiceMatch[] => {
    const own = found.get(labelOf(service));
    if (!own) return [];
    const because = new Map(own.map((each) => [JSON.stringify(each.because), each.because]));
    return [{ service, labels: new Set(own.map(({ port }) => port.name)), because: [...because.values()] }];
  });
  if (matches.length > 0) return { kind: 'services', matches };
  const { address } = asked;
  const why =
    address &&
    (explainUnanswered(ports, address, asNode) ??
      (view.objects && explainUnserved(address, view.objects, view.services)));
  return {
    kind: 'nothing',
    why: why ?? `no Service, address, port, chain or set matches ${JSON.stringify(what)}${hint(asked, view)}`,
  };
}

/** Services that were read from a dump, and what they were read from. */
export interface DumpedServices extends Decompiled, HeldState {
  readonly coverage: Coverage;
}

/**
 * Finds what a text is about in a dump: Service ports, those that only rules of another mode show in `left`; or else chains and
 * sets that none of them has, or that all share.
 */
export function findInDump(
  text: string,
  dump: DumpedServices,
):
  | {
      readonly kind: 'found';
      readonly ports: readonly ShownPort[];
      readonly left: readonly ShownPort[];
      readonly subjects: readonly SharedSubject[] | undefined;
    }
  | { readonly kind: 'nothing'; readonly why: string } {
  const { owners, state } = dump;
  const what = bareName(text);
  const items = findItems(what, dump);
  // A chain may be known by its name alone.
  const label = items?.owner?.label ?? owners.ofChain({ name: what, rules: [] }) ?? owners.ofNftChain({ name: what });
  const asked = parseAsked(label ?? what);
  const node = nodeOfDump(state, dump.coverage);
  const [ports = [], left = []] = [dump.ports, dump.leftovers.ports].map((all) =>
    findPorts(all, asked, node).map(({ port }) => port),
  );
  if (ports.length + left.length > 0) return { kind: 'found', ports, left, subjects: undefined };
  const subjects = [...(items?.subjects ?? []), ...healthCheckSets(asked, dump)];
  if (subjects.length > 0) return { kind: 'found', ports, left, subjects };
  const why = asked.address && explainUnanswered(dump.ports, asked.address, node);
  return {
    kind: 'nothing',
    why: why ?? `the dump shows no Service, chain or set that matches ${JSON.stringify(text)}`,
  };
}

/** The sets that have a health check node port: no more than its number is in a kernel, and no Service. */
function healthCheckSets({ number }: Asked, dump: DumpedServices): readonly SharedSubject[] {
  if (!number || (number.protocol ?? 'TCP') !== 'TCP') return [];
  const names = new Set(families.map((family) => setName('healthCheckNodePort', family)));
  return dump.state.sets
    .filter(({ name, entries }) => names.has(name) && entries.some(({ port }) => port === number.port))
    .map((set) => describeSet(set, dump));
}

function labelOf({ namespace, name }: ServiceInfo): string {
  return `${namespace}/${name}`;
}

/** What could be meant by a text that was not found: a clause, or nothing. */
function hint({ text, address, names }: Asked, view: View): string {
  const { mode } = view.services.settings;
  const maker = modeOfName(text);
  if (maker !== undefined && maker !== mode) {
    return `; ${modeFacts[mode].title} has no chain of that kind, so this may be one that --proxy-mode ${maker} makes`;
  }
  const suggestions = address ? [] : suggest(names.at(-1)?.name ?? text, view.services.cluster.services);
  return suggestions.length === 0 ? '' : `; did you mean ${suggestions.join(' or ')}?`;
}

/** Ports of Services with exactly this name; else Services with it in other namespaces, or with similar names. */
function suggest(named: string, services: readonly ServiceInfo[]): readonly string[] {
  const known = services.filter((service) => service.name === named || labelOf(service) === named);
  if (known.length > 0) {
    return known
      .slice(0, mostSuggestions)
      .flatMap((service) => service.ports.map(({ name, port }) => `${labelOf(service)}:${name || port}`));
  }
  const bare = named.slice(named.indexOf('/') + 1);
  const all = new Set(services.map(({ name }) => name));
  const near = all.has(bare) ? [bare] : nearest(bare, [...all]);
  return services.flatMap((each) => (near.includes(each.name) ? [labelOf(each)] : [])).slice(0, mostSuggestions);
}
