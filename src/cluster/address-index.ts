import type { Family } from '../kernel/address.ts';
import {
  portAddresses,
  serviceName,
  type AddressIndex,
  type Cluster,
  type ClusterObjects,
  type Endpoint,
  type PlacedEndpoint,
  type ShownPort,
} from './model.ts';

class PortIndex<Port extends ShownPort> implements AddressIndex<Port> {
  readonly #ports: readonly Port[];
  #services: ReadonlyMap<string, readonly Port[]> | undefined;
  #nodePorts: ReadonlyMap<number, readonly Port[]> | undefined;
  #served: ReadonlyMap<string, readonly Port[]> | undefined;
  #ofServices: ReadonlyMap<string, readonly Port[]> | undefined;
  #endpoints: ReadonlyMap<string, PlacedEndpoint | readonly PlacedEndpoint[]> | undefined;
  readonly #families = new Set<Family>();

  constructor(ports: readonly Port[]) {
    this.#ports = ports;
  }

  servicesAt(address: string): readonly Port[] {
    this.#services ??= this.#indexBy((port) => portAddresses(port).map((each) => each.address.text));
    return this.#services.get(address) ?? none;
  }

  nodePortsAt(port: number): readonly Port[] {
    this.#nodePorts ??= this.#indexBy(({ nodePort = 0, healthCheckNodePort = 0 }) =>
      [nodePort, healthCheckNodePort].filter((each) => each > 0),
    );
    return this.#nodePorts.get(port) ?? none;
  }

  servedAt(address: string): readonly Port[] {
    if (!this.#placed.has(address)) return none;
    this.#served ??= this.#indexBy(({ endpoints = none }) => endpoints.flatMap((each) => each.address?.text ?? none));
    return this.#served.get(address) ?? none;
  }

  portsOf(service: string): readonly Port[] {
    this.#ofServices ??= this.#indexBy((port) => [serviceName(port)]);
    return this.#ofServices.get(service) ?? none;
  }

  endpointsAt(address: string): readonly PlacedEndpoint[] {
    const found = this.#placed.get(address) ?? none;
    return isList(found) ? found : [found];
  }

  *endpointsOf(family: Family): Generator<PlacedEndpoint, void, undefined> {
    for (const address of this.#placed.keys()) {
      if (!this.#families.has(family)) return;
      for (const endpoint of this.endpointsAt(address)) if (endpoint.address.family === family) yield endpoint;
    }
  }

  /** Keeps a single endpoint without a list, because nearly every address has only one and lists would take most of the memory. */
  get #placed(): ReadonlyMap<string, PlacedEndpoint | readonly PlacedEndpoint[]> {
    if (this.#endpoints) return this.#endpoints;
    const index = new Map<string, PlacedEndpoint | PlacedEndpoint[]>();
    for (const { endpoints = none } of this.#ports) {
      for (const endpoint of endpoints) {
        if (!isPlaced(endpoint)) continue;
        const { text, family } = endpoint.address;
        this.#families.add(family);
        const known = index.get(text);
        if (known === undefined) index.set(text, endpoint);
        else if (known !== endpoint) index.set(text, withLast(known, endpoint));
      }
    }
    return (this.#endpoints = index);
  }

  #indexBy<Key>(keysOf: (port: Port) => readonly Key[]): ReadonlyMap<Key, readonly Port[]> {
    const index = new Map<Key, Port[]>();
    for (const port of this.#ports) {
      for (const key of keysOf(port)) {
        const known = index.get(key);
        if (!known) index.set(key, [port]);
        else if (known.at(-1) !== port) known.push(port);
      }
    }
    return index;
  }
}

export function indexCluster(objects: ClusterObjects): Cluster {
  return { ...objects, addresses: indexPorts(objects.servicePorts) };
}

export function indexPorts<Port extends ShownPort>(ports: readonly Port[]): AddressIndex<Port> {
  return new PortIndex(ports);
}

function isPlaced(endpoint: Endpoint<undefined>): endpoint is PlacedEndpoint {
  return endpoint.address !== undefined && endpoint.port !== undefined;
}

function isList(found: PlacedEndpoint | readonly PlacedEndpoint[]): found is readonly PlacedEndpoint[] {
  return Array.isArray(found);
}

function withLast(known: PlacedEndpoint | PlacedEndpoint[], endpoint: PlacedEndpoint): PlacedEndpoint[] {
  const all = Array.isArray(known) ? known : [known];
  const same = all.findIndex(({ port }) => port === endpoint.port);
  all[same < 0 ? all.length : same] = endpoint;
  return all;
}

const none: readonly never[] = [];
