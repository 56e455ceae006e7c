import { planTraffic } from '../cluster/plan-traffic.ts';
import type { ServicePort } from '../cluster/model.ts';
import { groupBy } from '../cluster/group-by.ts';
import { parseAddress } from '../kernel/address.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import type { Unused } from '../diagnostics/lint.ts';
import { unanswered, type Finding, type PacketClaim } from './finding.ts';
import { nameOfSelected, type LintedService, type LintInput } from './lint-input.ts';
import { socketOf } from './policy-rules.ts';

function isServed(port: ServicePort): boolean {
  return planTraffic(port, { name: '', zone: '' }).hasEndpoints;
}

/** A packet to the cluster IP, which gets no endpoint on any node. kpc knows the node's own address in any input. */
export function refused(port: ServicePort, { nodes }: LintInput): PacketClaim {
  return { ...socketOf(port), from: 'node', to: port.clusterIP, node: nodes[0]?.name ?? '', ends: unanswered };
}

/** Services whose slices or Pods are known, and hold no endpoint that takes connections. */
export function findUnserved(input: LintInput): readonly Finding[] {
  return input.services.flatMap((service): readonly Finding[] => {
    const { name, ports, slices, selected, isScaledToZero, knowsEndpoints, source } = service;
    const [first] = ports;
    if (!first || !knowsEndpoints || ports.some(isServed)) return [];
    const endpoints = Math.max(...ports.map((port) => port.endpoints.length));
    const filled = slices.filter(({ object }) => object.endpoints.length > 0);
    const unused = endpoints === 0 && filled.length > 0 ? whyUnused(service, filled) : undefined;
    // Ports that do not fit, and selectors, have messages of their own.
    if (endpoints === 0 && !unused && (filled.length > 0 || (slices.length === 0 && selected.length === 0))) return [];
    const publishes = service.object.spec.publishNotReadyAddresses;
    const [pod] = endpoints === 0 ? selected : [];
    const details = {
      service: name,
      endpoints,
      publishes,
      owner: pod && nameOfSelected(pod.object),
      isScaledToZero,
      unused,
    };
    const diagnostic = diagnose('no-ready-endpoint', details, source.place(['metadata', 'name']));
    return [{ diagnostic, service: name, packet: refused(first, input) }];
  });
}

/** Why kube-proxy skips all of these slices; undefined if their ports have other names. */
function whyUnused({ object: { spec }, ports }: LintedService, slices: LintedService['slices']): Unused | undefined {
  const types = [...new Set(slices.map(({ object }) => object.addressType))];
  const families = new Set<string>(ports.map(({ family }) => family));
  const usable = slices.filter(({ object }) => families.has(object.addressType.toLowerCase()));
  if (usable.length === 0) return { by: 'address-type', types };
  const ofName = usable
    .flatMap(({ object }) => object.ports)
    .filter((port) => spec.ports.some((own) => own.name === port.name && own.protocol === port.protocol));
  return ofName.length > 0 && ofName.every(({ port }) => !port) ? { by: 'port' } : undefined;
}

/**
 * Services of what a cluster seems to have printed, since nothing of it lacks an address, that have no slices where others have
 * some. In a cluster, each Service with a selector has one.
 */
export function findUngiven({ services, nodes, loaded: { inputs } }: LintInput): readonly Finding[] {
  const { workloads, pods, slices, endpoints } = inputs;
  if (workloads.length > 0 || pods.length > 0 || slices.length + endpoints.length === 0) return [];
  if (services.some(({ written, ports }) => ports.length > 0 && written.spec.clusterIP === '')) return [];
  return services.flatMap(({ object, name, ports, knowsEndpoints, source }): readonly Finding[] => {
    if (ports.length === 0 || knowsEndpoints) return [];
    // Without a selector, it has the slices that somebody writes, maybe in another file.
    if (nodes.length === 0 && object.spec.selector === undefined) return [];
    const details = { services: [name], selecting: 1, hasWorkloads: false };
    return [{ diagnostic: diagnose('no-endpoints-given', details, source.place(['metadata', 'name'])), service: name }];
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
