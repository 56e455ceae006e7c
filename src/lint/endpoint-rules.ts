import { planTraffic } from '../cluster/plan-traffic.ts';
import type { ServicePort } from '../cluster/model.ts';
import type { Pod, Service, Sourced } from '../cluster/objects.ts';
import { groupBy } from '../cluster/group-by.ts';
import { parseAddress } from '../kernel/address.ts';
import { findNearest } from '../base/find-nearest.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import type { ObjectName } from '../input/objects/read-objects.ts';
import { unanswered, type Finding, type PacketClaim } from './finding.ts';
import { asPod, nameOfSelected, type LintInput } from './lint-input.ts';
import { socketOf } from './policy-rules.ts';

function isServed(port: ServicePort): boolean {
  return planTraffic(port, { name: '', zone: '' }).hasEndpoints;
}

/** A packet to the cluster IP, which gets no endpoint on any node. kpc knows the node's own address in any input. */
function refused(port: ServicePort, { nodes }: LintInput): PacketClaim {
  return { ...socketOf(port), from: 'node', to: port.clusterIP, node: nodes[0]?.name ?? '', ends: unanswered };
}

/** Services whose slices or Pods are known, and hold no endpoint that takes connections. */
export function findUnserved(input: LintInput): readonly Finding[] {
  return input.services.flatMap((service): readonly Finding[] => {
    const { name, ports, slices, selected, knowsEndpoints, source } = service;
    const [first] = ports;
    if (!first || !knowsEndpoints || ports.some(isServed)) return [];
    const endpoints = Math.max(...ports.map((port) => port.endpoints.length));
    const inSlices = slices.reduce((sum, { object }) => sum + object.endpoints.length, 0);
    // Ports that do not fit, and selectors, have messages of their own.
    if (endpoints === 0 && (inSlices > 0 || (slices.length === 0 && selected.length === 0))) return [];
    const publishes = service.object.spec.publishNotReadyAddresses;
    const details = { service: name, endpoints, publishes };
    const diagnostic = diagnose('no-ready-endpoint', details, source.place(['metadata', 'name']));
    return [{ diagnostic, service: name, packet: refused(first, input) }];
  });
}

/** Services with cluster IPs of both families, whose endpoints are of one. */
export function findLackingFamilies(input: LintInput): readonly Finding[] {
  return input.services.flatMap((service): readonly Finding[] => {
    const { name, ports, knowsEndpoints, source } = service;
    if (!knowsEndpoints) return [];
    const families = groupBy(ports, ({ family }) => family);
    const [lacking, ...others] = [...families.values()].filter((own) =>
      own.every((port) => port.endpoints.length === 0),
    );
    const other = [...families.values()].find((own) => own.some(isServed))?.[0].family;
    if (!lacking || others.length > 0 || other === undefined) return [];
    const [port] = lacking;
    const { family, clusterIP } = port;
    const details = { service: name, address: clusterIP.text, family, other };
    const diagnostic = diagnose('family-without-endpoints', details, source.place(['spec', 'ipFamilies']));
    return [{ diagnostic, service: name, packet: refused(port, input) }];
  });
}

/** Endpoints that are cluster IPs of the input, but for those that kpc chose. */
export function findVirtualEndpoints({ services }: LintInput): readonly Finding[] {
  const holders = new Map(
    services.flatMap(({ name, written }) =>
      written.spec.clusterIPs.map((text) => [parseAddress(text)?.text ?? '', name] as const),
    ),
  );
  return services.flatMap(({ name, ports }): readonly Finding[] => {
    const endpoints = new Map(ports.flatMap((port) => port.endpoints.map((each) => [each.address.text, each])));
    return [...endpoints].flatMap(([address, { place }]): readonly Finding[] => {
      const holder = holders.get(address);
      if (holder === undefined) return [];
      const diagnostic = diagnose('cluster-ip-endpoint', { service: name, address, holder }, place);
      return [{ diagnostic, service: name }];
    });
  });
}

/** Slice ports that no Service port has. */
export function findUnusedPorts({ services }: LintInput): readonly Finding[] {
  return services.flatMap(({ object: { spec }, name, skipped, slices }): readonly Finding[] => {
    if (skipped) return [];
    const known = new Set(spec.ports.map((port) => `${port.name}/${port.protocol}`));
    const filled = slices.filter(({ object }) => object.endpoints.length > 0);
    const written = new Set(
      filled.flatMap(({ object }) => object.ports.map((port) => `${port.name}/${port.protocol}`)),
    );
    // A Service port without slice port is the better message: unknown-port.
    if ([...known].some((port) => !written.has(port))) return [];
    const found = new Map<string, Finding>();
    for (const { object, source } of filled) {
      for (const [i, port] of object.ports.entries()) {
        const key = `${port.name}/${port.protocol}`;
        if (known.has(key) || found.has(key)) continue;
        const ports = spec.ports.map(portWords);
        const details = { service: name, port: portWords(port), ports };
        found.set(key, {
          diagnostic: diagnose('unused-slice-port', details, source.place(['ports', i])),
          service: name,
        });
      }
    }
    return [...found.values()];
  });
}

/** "http/TCP", or "TCP" without a name. */
function portWords({ name, protocol }: { readonly name: string; readonly protocol: string }): string {
  return name === '' ? protocol : `${name}/${protocol}`;
}

/**
 * Selectors that no Pod has: of the Pods of a cluster; or of the workloads and Pods of manifests, if there are any. A Pod that
 * was printed from a cluster says nothing of a Service that was not. An operator makes Pods that no manifest shows, and labels
 * them with the name of the custom resource that asks for them.
 */
export function findEmptySelections(input: LintInput): readonly Finding[] {
  const { pods, workloads, customResources } = input.loaded.inputs;
  const templates = [...pods, ...workloads.map(asPod)];
  const hasManifests = templates.some(({ object }) => object.status === undefined);
  const empty = input.services.filter(({ object, selected, slices, ports, isOfCluster, knowsEndpoints }) => {
    if (Object.keys(object.spec.selector ?? {}).length === 0 || selected.length > 0) return false;
    if (slices.length > 0 || ports.length === 0) return false;
    return isOfCluster
      ? knowsEndpoints
      : hasManifests && !knowsEndpoints && !isServedByOperator(object, customResources);
  });
  if (empty.length === 0) return [];
  const byNamespace = groupBy(templates, ({ object }) => object.metadata.namespace);
  const findElsewhere = finderByLabels(templates);
  return empty.map(({ object, name, source, ports: [port], isOfCluster }): Finding => {
    const selector = object.spec.selector ?? {};
    const near = findNearLabel(selector, byNamespace.get(object.metadata.namespace) ?? []);
    const elsewhere = near ? undefined : findElsewhere(selector);
    const words = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
    const details = { services: [name], selector: words.join(), near, elsewhere };
    const diagnostic = diagnose('selects-nothing', details, source.place(['spec', 'selector']));
    return { diagnostic, service: name, packet: isOfCluster && port ? refused(port, input) : undefined };
  });
}

/** Whether a selector asks for the name of a custom resource in the namespace of its Service. */
function isServedByOperator({ metadata, spec }: Service, customResources: readonly ObjectName[]): boolean {
  const values = new Set(Object.values(spec.selector ?? {}));
  return customResources.some(({ name, namespace }) => namespace === metadata.namespace && values.has(name));
}

/** Returns a function that names a Pod or workload with all labels of a selector, in whatever namespace. */
function finderByLabels(pods: readonly Sourced<Pod>[]) {
  const labelled = pods.flatMap(({ object }) =>
    Object.entries(object.metadata.labels).map((label) => ({ key: label.join('='), pod: object })),
  );
  const byLabel = groupBy(labelled, ({ key }) => key);
  return (selector: Readonly<Record<string, string>>): string | undefined => {
    const wanted = Object.entries(selector);
    const lists = wanted.map((label) => byLabel.get(label.join('=')) ?? []);
    const [shortest = []] = lists.toSorted((a, b) => a.length - b.length);
    const found = shortest.find(({ pod }) => wanted.every(([key, value]) => pod.metadata.labels[key] === value));
    return found && nameOfSelected(found.pod);
  };
}

/** A label that differs in a letter or two from one of the selector, of Pods that have all others. */
function findNearLabel(selector: Readonly<Record<string, string>>, pods: readonly Sourced<Pod>[]) {
  const wanted = Object.entries(selector);
  for (const { object } of pods) {
    const { labels } = object.metadata;
    const [odd, ...others] = wanted.filter(([key, value]) => labels[key] !== value);
    if (!odd || others.length > 0) continue;
    const [key, value] = odd;
    const own = Object.entries(labels).find(
      ([name, each]) => (name === key && isMisspelled(value, each)) || (each === value && isMisspelled(key, name)),
    );
    if (own) return { label: own.join('='), owner: nameOfSelected(object) };
  }
  return undefined;
}

/** Two letters at most, and no other number: web-1 and web-2 are different things. */
function isMisspelled(text: string, meant: string): boolean {
  const [letters, others] = [text, meant].map((each) => each.replaceAll(/\d/g, ''));
  return letters !== others && findNearest(text, [meant], 2) !== undefined;
}
