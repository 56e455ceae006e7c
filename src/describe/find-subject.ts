import { groupBy } from '../cluster/group-by.ts';
import type { ServiceInfo } from '../cluster/model.ts';
import type { Coverage } from '../dumps/coverage.ts';
import { families } from '../kernel/family.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { findNodePortListeners } from '../kube-proxy/node-port-listeners.ts';
import { setName } from '../kube-proxy/ipvs-sets.ts';
import { bareName, parseAsked, splitName, type Asked } from './parse-asked.ts';
import type { Decompiled } from './decompile.ts';
import type { View } from './describe-services.ts';
import { describeSet, findItems, modeOfName, type HeldState, type ItemRole, type SharedSubject } from './find-items.ts';
import {
  explainUnanswered,
  explainUnserved,
  findPorts,
  nodeOfDump,
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

/** What a text is looked up in. */
interface Known extends HeldState {
  readonly ports: readonly ShownPort[];
  readonly node: AskedNode;
  /** The Service port of a chain that the state lacks. */
  readonly labelOfChain?: (chain: string) => string | undefined;
}

/** What a text leads to: Service ports, or else chains and sets that none of them has, or that all share. */
interface Found {
  readonly asked: Asked;
  readonly matches: readonly { readonly port: ShownPort; readonly because: Because }[];
  readonly subjects: readonly SharedSubject[];
  /** Why no Service answers at an address. */
  readonly unanswered: string | undefined;
}

/**
 * Finds what a text is about: a line of iptables-save, a chain, a set or an entry of one, an address with or without a
 * port, a node port, a Service by its name ("name", "namespace/name", either with ":port"), or its name in DNS.
 */
function find(text: string, { ports, node, labelOfChain, ...held }: Known): Found {
  const what = bareName(text.trim());
  const { owner, subjects = [] } = findItems(what, held) ?? {};
  const label = owner?.label ?? labelOfChain?.(what);
  const asked = parseAsked(label ?? what);
  const because = owner?.role ?? { kind: 'name' };
  const owned = ports.filter(({ name }) => name === label).map((port) => ({ port, because }));
  return {
    asked,
    matches: owned.length > 0 ? owned : findPorts(ports, asked, node),
    subjects,
    unanswered: asked.address && explainUnanswered(ports, asked.address, node),
  };
}

/** Finds what a text is about in manifests or a bundle. */
export function findSubject(text: string, view: View): Finding {
  const { cluster, node } = view.services;
  const isOwn: AskedNode['isOwn'] = (own) => node.hostAddresses.some((each) => each.text === own.text);
  const { asked, matches, subjects, unanswered } = find(text, {
    ...view,
    ports: [...cluster.servicePorts.map(shownInManifests), ...cluster.services.flatMap(shownWithoutPorts)],
    node: { isOwn, listeners: findNodePortListeners(view.state) },
  });
  if (matches.length > 0) {
    const byService = groupBy(matches, ({ port }) => splitName(port.name)[0] ?? '');
    const found = cluster.services.flatMap((service): readonly ServiceMatch[] => {
      const own = byService.get(labelOf(service)) ?? [];
      const because = new Map(own.map((each) => [JSON.stringify(each.because), each.because]));
      const labels = new Set(own.map(({ port }) => port.name));
      return own.length === 0 ? [] : [{ service, labels, because: [...because.values()] }];
    });
    return { kind: 'services', matches: found };
  }
  if (subjects.length > 0) return { kind: 'shared', subjects };
  const unserved = asked.address && view.objects && explainUnserved(asked.address, view.objects, view.services);
  const nothing = `no Service, address, port, chain or set matches ${JSON.stringify(asked.text)}`;
  return { kind: 'nothing', why: unanswered ?? unserved ?? `${nothing}${hint(asked, view)}` };
}

/** Services that were read from a dump, and what they were read from. */
export interface DumpedServices extends Decompiled, HeldState {
  readonly coverage: Coverage;
}

/** What a text leads to in a dump: Service ports, also those that only rules of another mode show, or else chains and sets. */
type FoundInDump =
  | {
      readonly kind: 'found';
      readonly ports: readonly ShownPort[];
      readonly subjects: readonly SharedSubject[] | undefined;
    }
  | { readonly kind: 'nothing'; readonly why: string };

/** Finds what a text is about in a dump. */
export function findInDump(text: string, dump: DumpedServices): FoundInDump {
  const { owners, state } = dump;
  const { asked, matches, ...found } = find(text, {
    state,
    owners,
    ports: [...dump.ports, ...dump.leftovers.ports],
    node: nodeOfDump(state, dump.coverage),
    // A chain may be known by its name alone.
    labelOfChain: (name) => owners.ofChain({ name, rules: [] }) ?? owners.ofNftChain({ name }),
  });
  if (matches.length > 0) return { kind: 'found', ports: matches.map(({ port }) => port), subjects: undefined };
  const subjects = [...found.subjects, ...healthCheckSets(asked, dump)];
  if (subjects.length > 0) return { kind: 'found', ports: [], subjects };
  const nothing = `the dump shows no Service, chain or set that matches ${JSON.stringify(text)}`;
  return { kind: 'nothing', why: found.unanswered ?? nothing };
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
