import { proxyNameLabel } from '../kube-proxy/skipped.ts';
import { type Address, contains, type Family, familyNames, type Network, parseAddress } from '../kernel/address.ts';
import type { PortRange } from '../kernel/ports-and-marks.ts';
import type { ArgumentsOf, FindingCode } from '../base/findings/codes.ts';
import { diagnose, type Finding } from '../base/findings/finding.ts';
import {
  compareFullNames,
  fullName,
  type FieldPath,
  type Service,
  type ServicePortSpec,
  type Sourced,
} from './objects.ts';
import { pick, pickAddress, poolSize } from './service-ranges.ts';

/** The ranges for missing addresses and node ports. If a range is absent, nothing is assigned from it. */
export interface AssignmentRanges {
  /** One network, or one for each family. Services without a family get the family of the first network. */
  readonly clusterIPs: readonly Network[];
  readonly fromObjects?: true | undefined;
  readonly nodePorts?: PortRange | undefined;
  readonly loadBalancerIPs?: readonly Network[] | undefined;
  /** Set if no flag names the load balancer networks. Services with a cluster IP then keep waiting for their real load balancer. */
  readonly sparesPending?: true | undefined;
}

export interface AssignedService {
  readonly service: string;
  readonly clusterIPs: readonly string[];
  readonly nodePorts: Readonly<Record<string, number>>;
  readonly healthCheckNodePort?: number | undefined;
  readonly loadBalancerIPs?: readonly string[] | undefined;
}

function assignedPorts({
  nodePorts,
  healthCheckNodePort,
}: Pick<AssignedService, 'nodePorts' | 'healthCheckNodePort'>): readonly number[] {
  return [...Object.values(nodePorts), ...(healthCheckNodePort === undefined ? [] : [healthCheckNodePort])];
}

/** `port`: limits the node ports to the port of this name, because two ports may have one number. */
export function assignedTexts(assigned: Omit<AssignedService, 'service'>, port?: string): readonly string[] {
  const { clusterIPs, loadBalancerIPs = [], healthCheckNodePort } = assigned;
  const own = Object.entries(assigned.nodePorts).filter(([key]) => port === undefined || nameInKey(key) === port);
  const nodePorts = Object.fromEntries(own);
  return [...clusterIPs, ...loadBalancerIPs, ...assignedPorts({ nodePorts, healthCheckNodePort }).map(String)];
}

export interface Assignment {
  readonly services: readonly Sourced<Service>[];
  /** Services that got a value, sorted by namespace and name. */
  readonly assigned: readonly AssignedService[];
  readonly diagnostics: readonly Finding[];
}

/**
 * Gives Services what the API server would assign: unused cluster IPs, node ports and health check node ports. Each choice starts from a
 * hash of the Service's name, so that it never depends on the input's order, and rarely on other Services. Warns of values that could not
 * be assigned, and of values that kube-proxy ignores.
 */
export function assignAddresses(services: readonly Sourced<Service>[], ranges: AssignmentRanges): Assignment {
  const lacking = services.filter(({ object }) => lacksAnything(object) || wantsLoadBalancer(object, ranges));
  const pending = findPendingBalancers(services.filter(({ object }) => !wantsLoadBalancer(object, ranges)));
  const familied = services.map((service) => withFamilies(service, ranges));
  if (lacking.length === 0) return { services: familied, assigned: [], diagnostics: pending };
  const assigner = new Assigner(services, ranges);
  const results = new Map<Sourced<Service>, Service>();
  for (const service of lacking.toSorted(compareFullNames)) results.set(service, assigner.assign(service));
  return {
    services: services.map((service, i) => {
      const object = results.get(service);
      return object ? { ...service, object } : (familied[i] ?? service);
    }),
    assigned: assigner.assigned,
    diagnostics: [...assigner.diagnostics, ...pending],
  };
}

/** Makes one note for all load balancers without an address, because most manifests in git have no address. */
function findPendingBalancers(services: readonly Sourced<Service>[]): readonly Finding[] {
  const pending = services
    .filter(
      ({ object }) =>
        lacksLoadBalancer(object) && object.spec.clusterIP !== 'None' && !(proxyNameLabel in object.metadata.labels),
    )
    .sort(compareFullNames);
  const [first] = pending;
  if (!first) return [];
  const names = pending.map(({ object }) => fullName(object.metadata));
  const place = first.source.place(['spec', 'type']);
  return [diagnose('no-load-balancer-ip', { services: names }, place)];
}

export function lacksAnything({ spec }: Service): boolean {
  if (spec.type === 'ExternalName' || spec.clusterIP === 'None') return false;
  return lacksClusterIP(spec) || lacksNodePort(spec) || lacksHealthCheckPort(spec);
}

function lacksClusterIP({ clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy }: Service['spec']): boolean {
  // The API server writes families together with addresses, so an address without a family was requested in a manifest.
  const isWish = ipFamilies.length === 0 && clusterIPs.length === 1 && wantsBothFamilies(ipFamilyPolicy);
  return clusterIP === '' || ipFamilies.length > clusterIPs.length || isWish;
}

function withFamilies(service: Sourced<Service>, ranges: AssignmentRanges): Sourced<Service> {
  const { spec } = service.object;
  if (spec.clusterIP !== 'None' || spec.ipFamilies.length > 0 || ranges.clusterIPs.length === 0) return service;
  return {
    ...service,
    object: { ...service.object, spec: { ...spec, ipFamilies: chooseServiceFamilies(spec, ranges) } },
  };
}

/**
 * Chooses families like the API server (initIPFamilyFields). PreferDualStack adds a second family if there is a range for it.
 * RequireDualStack always adds one, and so does a headless Service without a selector, unless it says SingleStack.
 */
function chooseServiceFamilies(
  { clusterIPs, ipFamilies, ipFamilyPolicy, clusterIP, selector = {} }: Service['spec'],
  ranges: AssignmentRanges,
): Service['spec']['ipFamilies'] {
  const configured = ranges.clusterIPs.map(({ family }) => familyNames[family]);
  const given = clusterIPs.flatMap((text) => {
    const family = parseAddress(text)?.family;
    return family ? [familyNames[family]] : [];
  });
  const wanted = [ipFamilies, given, configured.slice(0, 1)].find(({ length }) => length > 0) ?? [];
  const isFree = clusterIP === 'None' && Object.keys(selector).length === 0 && ipFamilyPolicy !== 'SingleStack';
  if (wanted.length !== 1 || !(isFree || wantsBothFamilies(ipFamilyPolicy))) return wanted;
  const second = wanted[0] === 'IPv4' ? 'IPv6' : 'IPv4';
  return isFree || ipFamilyPolicy === 'RequireDualStack' || configured.includes(second) ? [...wanted, second] : wanted;
}

export function wantsBothFamilies(policy: Service['spec']['ipFamilyPolicy']): boolean {
  return policy === 'PreferDualStack' || policy === 'RequireDualStack';
}

function lacksNodePort({ type, allocateLoadBalancerNodePorts, ports }: Service['spec']): boolean {
  const wantsPorts = type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts);
  return wantsPorts && ports.some(({ nodePort }) => nodePort === 0);
}

function lacksHealthCheckPort({ type, externalTrafficPolicy, healthCheckNodePort }: Service['spec']): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local' && healthCheckNodePort === 0;
}

function wantsLoadBalancer(service: Service, { loadBalancerIPs = [], sparesPending }: AssignmentRanges): boolean {
  const isSpared = sparesPending === true && service.spec.clusterIP !== '';
  return lacksLoadBalancer(service) && loadBalancerIPs.length > 0 && !isSpared;
}

export function lacksLoadBalancer({ spec, ingress }: Service): boolean {
  return spec.type === 'LoadBalancer' && ingress.length === 0;
}

function addressesInService({ spec, ingress }: Pick<Service, 'spec' | 'ingress'>): readonly string[] {
  return [spec.clusterIP, ...spec.clusterIPs, ...spec.externalIPs, ...ingress.map(({ ip }) => ip ?? '')];
}

/**
 * Reports whether `service` prevents `other` from getting its loadBalancerIP: `service` has the address, or requests it with a shared port.
 */
function takesFrom(service: Service, other: Service): boolean {
  const asked = parseAddress(other.spec.loadBalancerIP ?? '')?.text;
  const isAsked = (text: string | undefined): boolean => parseAddress(text ?? '')?.text === asked;
  return (
    addressesInService(service).some(isAsked) || (sharesPort(service, other) && isAsked(service.spec.loadBalancerIP))
  );
}

export function sharesPort(a: Pick<Service, 'spec'>, b: Pick<Service, 'spec'>): boolean {
  return a.spec.ports.some((one) =>
    b.spec.ports.some(({ port, protocol }) => port === one.port && protocol === one.protocol),
  );
}

class Assigner {
  readonly assigned: AssignedService[] = [];
  readonly diagnostics: Finding[] = [];
  readonly #services: readonly Sourced<Service>[];
  readonly #ranges: AssignmentRanges;
  readonly #usedAddresses = new Set<string>();
  readonly #usedPorts = new Set<number>();
  readonly #reserved = new Map<string, Address>();
  readonly #reservedPorts = new Set<string>();

  constructor(services: readonly Sourced<Service>[], ranges: AssignmentRanges) {
    this.#services = services;
    this.#ranges = ranges;
    for (const { object } of services) this.#markUsed(object);
    for (const { object } of services.toSorted(compareFullNames)) this.#reserve(object);
    for (const { text } of this.#reserved.values()) this.#usedAddresses.add(text);
  }

  /** Reserves the requested loadBalancerIP if it is free and in a range. Services with different ports may share one. */
  #reserve(service: Service): void {
    if (!wantsLoadBalancer(service, this.#ranges)) return;
    const asked = parseAddress(service.spec.loadBalancerIP ?? '');
    const ranges = this.#ranges.loadBalancerIPs ?? [];
    const sockets = service.spec.ports.map(({ port, protocol }) => `${asked?.text} ${port}/${protocol}`);
    if (!asked || this.#usedAddresses.has(asked.text) || sockets.some((each) => this.#reservedPorts.has(each))) return;
    // Without a flag for the networks, any requested address is allowed.
    if (!this.#ranges.sparesPending && !ranges.some((range) => contains(range, asked))) return;
    for (const each of sockets) this.#reservedPorts.add(each);
    this.#reserved.set(fullName(service.metadata), asked);
  }

  #markUsed({ spec, ingress }: Service): void {
    for (const text of addressesInService({ spec, ingress })) this.#usedAddresses.add(parseAddress(text)?.text ?? text);
    for (const { nodePort } of spec.ports) this.#usedPorts.add(nodePort);
    this.#usedPorts.add(spec.healthCheckNodePort);
  }

  assign(service: Sourced<Service>): Service {
    const { object } = service;
    const addresses = this.#assignClusterIPs(service);
    const ports = this.#assignNodePorts(service);
    const healthCheckNodePort = this.#assignHealthCheckPort(service);
    const loadBalancerIPs = this.#assignLoadBalancer(service, addresses?.clusterIPs ?? object.spec.clusterIPs);
    const changed = addresses ?? ports ?? healthCheckNodePort ?? loadBalancerIPs;
    if (changed === undefined) return object;
    const given = object.spec.clusterIPs.length;
    this.assigned.push({
      service: fullName(object.metadata),
      clusterIPs: addresses?.clusterIPs.slice(given) ?? [],
      nodePorts: ports ? newNodePorts(object.spec.ports, ports) : {},
      ...(healthCheckNodePort === undefined ? {} : { healthCheckNodePort }),
      ...(loadBalancerIPs ? { loadBalancerIPs } : {}),
    });
    return {
      ...object,
      ...(loadBalancerIPs ? { ingress: loadBalancerIPs.map((ip) => ({ ip, ipMode: 'VIP' as const })) } : {}),
      spec: {
        ...object.spec,
        ...addresses,
        ...(ports ? { ports } : {}),
        ...(healthCheckNodePort === undefined ? {} : { healthCheckNodePort }),
      },
    };
  }

  #assignClusterIPs(
    service: Sourced<Service>,
  ): Pick<Service['spec'], 'clusterIP' | 'clusterIPs' | 'ipFamilies'> | undefined {
    const { spec } = service.object;
    if (!lacksClusterIP(spec)) return undefined;
    if (this.#ranges.clusterIPs.length === 0) {
      if (spec.clusterIP === '') {
        this.#report(service, ['spec'], 'not-assigned', {
          field: 'clusterIP',
          service: fullName(service.object.metadata),
        });
      }
      return undefined;
    }
    const ipFamilies = chooseServiceFamilies(spec, this.#ranges);
    if (ipFamilies.length === spec.clusterIPs.length) return undefined;
    const clusterIPs = [...spec.clusterIPs];
    for (const ipFamily of ipFamilies.slice(clusterIPs.length)) {
      const address = this.#takeAddress(service, ipFamily === 'IPv4' ? 'ipv4' : 'ipv6');
      if (address === undefined) return undefined;
      clusterIPs.push(address);
    }
    return { clusterIP: clusterIPs[0] ?? '', clusterIPs, ipFamilies };
  }

  #takeAddress(service: Sourced<Service>, family: Family): string | undefined {
    const name = fullName(service.object.metadata);
    const range = this.#ranges.clusterIPs.find((network) => network.family === family);
    if (!range) {
      const source = this.#ranges.fromObjects ? 'the ServiceCIDRs' : '--service-cluster-ip-range';
      const field = service.object.spec.ipFamilies.includes(familyNames[family]) ? 'ipFamilies' : 'ipFamilyPolicy';
      this.#report(service, ['spec', field], 'range-is-full', {
        what: family,
        ranges: [source],
        service: name,
      });
      return undefined;
    }
    // Skip the network's own address and the API server's.
    const reserved = Math.min(Math.max(16, Math.floor(poolSize(range) / 16)), 256);
    const address = this.#pickAddress(`${name}/${family}`, range, { skipped: 2, reserved });
    if (address === undefined) {
      this.#report(service, ['spec'], 'range-is-full', { what: 'clusterIP', ranges: [range.text], service: name });
    }
    return address;
  }

  #pickAddress(name: string, network: Network, counts: Parameters<typeof pickAddress>[2]): string | undefined {
    const address = pickAddress(name, network, counts, (text) => !this.#usedAddresses.has(text));
    if (address) this.#usedAddresses.add(address.text);
    return address?.text;
  }

  /** Assigns node ports; returns undefined if no port needed one. A port with two protocols gets one number for both. */
  #assignNodePorts(service: Sourced<Service>): readonly ServicePortSpec[] | undefined {
    const { spec } = service.object;
    if (!lacksNodePort(spec)) return undefined;
    if (!this.#ranges.nodePorts) {
      const missing = spec.ports.filter(({ nodePort }) => nodePort === 0);
      const ports = missing.map(({ port, protocol }) => `${port}/${protocol}`);
      const first = spec.ports.findIndex((port) => port.nodePort === 0);
      const details = { field: 'nodePort', service: fullName(service.object.metadata), ports } as const;
      this.#report(service, ['spec', 'ports', first], 'not-assigned', details);
      return undefined;
    }
    const chosen = new Map<number, number>();
    for (const { port, nodePort } of spec.ports) {
      if (nodePort !== 0 && !chosen.has(port)) chosen.set(port, nodePort);
    }
    const nodePortOf = ({ port, nodePort }: ServicePortSpec): number => {
      const number = nodePort || (chosen.get(port) ?? this.#takePort(service, `port ${port}`) ?? 0);
      chosen.set(port, number);
      return number;
    };
    return spec.ports.map((port) => ({ ...port, nodePort: nodePortOf(port) }));
  }

  #assignLoadBalancer(service: Sourced<Service>, clusterIPs: readonly string[]): readonly string[] | undefined {
    const { object } = service;
    if (!wantsLoadBalancer(object, this.#ranges)) return undefined;
    const ranges = this.#ranges.loadBalancerIPs ?? [];
    const families = new Set(clusterIPs.flatMap((text) => parseAddress(text)?.family ?? []));
    const taken = [...families].flatMap((family) => {
      const own = ranges.filter((network) => network.family === family);
      if (own.length === 0) return [];
      return this.#takeLoadBalancerIP(service, family, own) ?? [];
    });
    return taken.length > 0 ? taken : undefined;
  }

  #takeLoadBalancerIP(service: Sourced<Service>, family: Family, ranges: readonly Network[]): string | undefined {
    const name = fullName(service.object.metadata);
    const asked = this.#reserved.get(name);
    if (asked?.family === family) return asked.text;
    const wish = service.object.spec.loadBalancerIP ?? '';
    const names = ranges.map(({ text }) => text);
    if (!asked && parseAddress(wish)?.family === family) {
      const holder = this.#services.find(
        ({ object }) => object !== service.object && takesFrom(object, service.object),
      );
      const details = { service: name, asked: wish, ranges: names, holder: holder && fullName(holder.object.metadata) };
      this.#report(service, ['spec', 'loadBalancerIP'], 'other-load-balancer-ip', details);
    }
    for (const range of ranges) {
      const skipped = poolSize(range) > 2 ? 1 : 0;
      const address = this.#pickAddress(`${name}/load balancer/${family}`, range, { skipped });
      if (address !== undefined) return address;
    }
    this.#report(service, ['spec'], 'range-is-full', { what: 'loadBalancerIP', ranges: names, service: name });
    return undefined;
  }

  #assignHealthCheckPort(service: Sourced<Service>): number | undefined {
    const { spec } = service.object;
    if (!lacksHealthCheckPort(spec)) return undefined;
    if (this.#ranges.nodePorts) return this.#takePort(service, 'health check');
    const details = { field: 'healthCheckNodePort', service: fullName(service.object.metadata) } as const;
    this.#report(service, ['spec', 'externalTrafficPolicy'], 'not-assigned', details);
    return undefined;
  }

  #takePort(service: Sourced<Service>, purpose: string): number | undefined {
    const range = this.#ranges.nodePorts;
    if (!range) return undefined;
    const size = range.last - range.first + 1;
    const name = fullName(service.object.metadata);
    const reserved = size < 32 ? 0 : Math.min(Math.max(16, Math.floor(size / 32)), 128);
    const offset = pick(`${name}/${purpose}`, size, reserved, (at) => !this.#usedPorts.has(range.first + at));
    if (offset === undefined) {
      const details = { what: 'nodePort', ranges: [`${range.first}-${range.last}`], service: name } as const;
      this.#report(service, ['spec', 'ports'], 'range-is-full', details);
      return undefined;
    }
    this.#usedPorts.add(range.first + offset);
    return range.first + offset;
  }

  #report<Code extends FindingCode>(
    { source }: Sourced<Service>,
    path: FieldPath,
    code: Code,
    details: ArgumentsOf<Code>,
  ): void {
    this.diagnostics.push(diagnose(code, details, source.place(path)));
  }
}

/** The name in "web/TCP"; '' in "TCP". */
function nameInKey(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf('/')));
}

function newNodePorts(before: readonly ServicePortSpec[], after: readonly ServicePortSpec[]): Record<string, number> {
  const added = after.filter(({ nodePort }, i) => nodePort !== 0 && before[i]?.nodePort === 0);
  return Object.fromEntries(
    added.map(({ name, protocol, nodePort }) => [name === '' ? protocol : `${name}/${protocol}`, nodePort]),
  );
}
