import { joinHostPort, type Address } from '../kernel/address.ts';
import type { Place } from '../kernel/place.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Cluster, ServicePort } from './model.ts';

/** An address, port and protocol that a Service port wants for itself. */
interface Claim {
  /** As people write it: "10.96.0.1:80/TCP", or "node port 30080/TCP". */
  readonly what: string;
  readonly place: Place | undefined;
}

/**
 * Warns of Service ports that claim the same address, port and protocol. kube-proxy serves whichever it happened to
 * program last; kpc serves the first by namespace, name, port name and protocol, in every mode.
 */
export function findConflicts(cluster: Cluster): readonly Diagnostic[] {
  const holders = new Map<string, ServicePort>();
  const diagnostics = new Map<string, Diagnostic>();
  for (const port of findRivals(cluster.servicePorts)) {
    for (const { what, place } of claimsOf(port)) {
      const holder = holders.get(what);
      if (!holder) holders.set(what, port);
      else if (holder.label !== port.label || holder.protocol !== port.protocol) {
        const diagnostic = diagnose('address-conflict', { what, holder: holder.label, rival: port.label }, place);
        diagnostics.set(diagnostic.text, diagnostic);
      }
    }
  }
  return [...diagnostics.values()];
}

/** The ports that share a node port or an address with another, in their order: mostly few, and none else can conflict. */
function findRivals(ports: readonly ServicePort[]): readonly ServicePort[] {
  const first = new Map<string | number, ServicePort>();
  const rivals = new Set<ServicePort>();
  ports.forEach((port) => {
    const claim = (where: string | number): void => {
      const other = first.get(where);
      if (!other) first.set(where, port);
      else if (other !== port) rivals.add(other).add(port);
    };
    claim(port.clusterIP.text);
    port.externalIPs.forEach(({ text }) => claim(text));
    port.loadBalancerIPs.forEach(({ text }) => claim(text));
    if (port.nodePort !== 0) claim(port.nodePort);
  });
  return rivals.size === 0 ? [] : ports.filter((port) => rivals.has(port));
}

function claimsOf(port: ServicePort): readonly Claim[] {
  const at = (address: Address, place: Place | undefined): Claim => ({
    what: `${joinHostPort(address.text, port.port)}/${port.protocol}`,
    place,
  });
  const nodePort = { what: `node port ${port.nodePort}/${port.protocol}`, place: port.places?.nodePort };
  return [
    at(port.clusterIP, port.places?.clusterIP),
    ...port.externalIPs.map((address, i) => at(address, port.places?.externalIP(i))),
    ...port.loadBalancerIPs.map((address, i) => at(address, port.places?.ingress(i))),
    ...(port.nodePort === 0 ? [] : [nodePort]),
  ];
}
