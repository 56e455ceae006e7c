import type { ServiceInfo } from '../cluster/model.ts';
import type { Coverage } from '../dumps/coverage.ts';
import { families } from '../kernel/family.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { findNodePortListeners } from '../kube-proxy/node-port-listeners.ts';
import { setName } from '../kube-proxy/ipvs-sets.ts';
import { bareName, nameInDns, parseAsked, type Asked } from './parse-asked.ts';
import type { Decompiled } from './decompile.ts';
import type { View } from './described-node.ts';
import {
  describeSet,
  findItems,
  isItemName,
  itemNames,
  modeOfName,
  type HeldState,
  type ItemRole,
  type SharedSubject,
} from './find-items.ts';
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
import { shownInManifests, type ShownPort } from './shown-port.ts';

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
  /** Its ports that are meant; undefined for all. */
  readonly labels: ReadonlySet<string> | undefined;
  readonly because: readonly Because[];
}

/** What the thing asked about is to the Service port. */
export type Because = PortRole | ItemRole;

/**
 * Finds what a text is about: a line of iptables-save, a chain, a set or an entry of one, an address with or without a
 * port, a node port, a Service by its name ("name", "namespace/name", either with ":port"), or its name in DNS.
 */
export function findSubject(text: string, view: View): Finding {
  const what = bareName(text.trim());
  const { cluster, node } = view.services;
  const items = findItems(what, view);
  const { owner } = items ?? {};
  const owned = owner && matchPorts(view, ({ name }) => (name === owner.label ? owner.role : undefined));
  if (owned) return owned;
  if (items && !owner) return { kind: 'shared', subjects: items.subjects };
  const asked = parseAsked(what);
  const { address, number } = asked;
  const asNode: AskedNode = {
    isOwn: (own) => node.hostAddresses.some((each) => each.text === own.text),
    listeners: findNodePortListeners(view.state),
  };
  const headless = address
    ? cluster.services.filter((each) => each.headlessEndpoints.some((one) => one.address === address.address.text))
    : [];
  const found =
    ((address ?? number) ? matchPorts(view, (port) => roleOf(port, asked, asNode)) : undefined) ??
    (number ? matchPorts(view, (port) => (hasOwnPort(port, asked) ? { kind: 'port' } : undefined)) : undefined) ??
    matchServices(
      headless.map((service) => {
        const because = [{ kind: 'endpoint', endpoint: address?.address.text ?? '' } as const];
        return { service, labels: undefined, because };
      }),
    ) ??
    findName(asked, view);
  if (found) return found;
  const why =
    address &&
    (explainUnanswered(
      cluster.servicePorts.map(shownInManifests),
      address,
      asNode,
      headless.map(({ namespace, name }) => `${namespace}/${name}`),
    ) ??
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
  const choose = (ports: readonly ShownPort[]): readonly ShownPort[] => {
    const found = ports.filter((port) => roleOf(port, asked, node));
    return found.length > 0 ? found : ports.filter((port) => hasOwnPort(port, asked));
  };
  const ports = choose(dump.ports);
  const left = choose(dump.leftovers.ports);
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

/** All Service ports for which `why` gives a reason, by Service. */
function matchPorts(view: View, why: (port: ShownPort) => Because | undefined): Finding | undefined {
  const found = new Map<string, { readonly labels: Set<string>; readonly because: Map<string, Because> }>();
  for (const port of view.services.cluster.servicePorts) {
    const because = why(shownInManifests(port));
    if (!because) continue;
    const key = `${port.namespace}/${port.service}`;
    const match = found.get(key) ?? { labels: new Set<string>(), because: new Map<string, Because>() };
    match.labels.add(port.label);
    match.because.set(JSON.stringify(because), because);
    found.set(key, match);
  }
  return matchServices(
    view.services.cluster.services.flatMap((service): readonly ServiceMatch[] => {
      const match = found.get(labelOf(service));
      return match ? [{ service, labels: match.labels, because: [...match.because.values()] }] : [];
    }),
  );
}

function matchServices(matches: readonly ServiceMatch[]): Finding | undefined {
  return matches.length > 0 ? { kind: 'services', matches } : undefined;
}

/** Services by name, also those that have no ports for kube-proxy; kubectl's way of naming one comes last. */
function findName({ names }: Asked, view: View): Finding | undefined {
  const because = [{ kind: 'name' }] as const;
  for (const { name, port } of names) {
    const matches = view.services.cluster.services.flatMap((service): readonly ServiceMatch[] => {
      const full = labelOf(service);
      if (full !== name && service.name !== name) return [];
      if (port === undefined) return [{ service, labels: undefined, because }];
      const spec = service.ports.find((each) => each.name === port || String(each.port) === port);
      if (!spec) return [];
      return [{ service, labels: new Set([spec.name === '' ? full : `${full}:${spec.name}`]), because }];
    });
    if (matches.length > 0) return { kind: 'services', matches };
  }
  return undefined;
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
  const { name = text } = names.at(-1) ?? {};
  const suggestions = isItemName(text)
    ? nearest(text, itemNames(view.state))
    : address
      ? []
      : suggestServices(name, nameInDns(text) !== undefined, view.services.cluster.services);
  return suggestions.length === 0 ? '' : `; did you mean ${suggestions.join(' or ')}?`;
}

/** Ports of Services of that very name; else Services whose names are near, or that are in another namespace. */
function suggestServices(named: string, isDns: boolean, services: readonly ServiceInfo[]): readonly string[] {
  const hasNamespace = named.includes('/');
  const known = isDns
    ? []
    : services
        .filter((service) => (hasNamespace ? labelOf(service) : service.name) === named)
        .slice(0, mostSuggestions);
  if (known.length > 0) {
    return known.flatMap((service) => service.ports.map(({ name, port }) => `${labelOf(service)}:${name || port}`));
  }
  // A Service of that very name in another namespace is what was meant more likely than any name that is near.
  const bare = named.slice(named.indexOf('/') + 1);
  const elsewhere = services.filter(({ name }) => name === bare).map(labelOf);
  if (elsewhere.length > 0) return elsewhere.slice(0, mostSuggestions);
  if (hasNamespace) return nearest(named, services.map(labelOf));
  const near = new Set(nearest(named, [...new Set(services.map(({ name }) => name))]));
  return services.flatMap((service) => (near.has(service.name) ? [labelOf(service)] : [])).slice(0, mostSuggestions);
}
