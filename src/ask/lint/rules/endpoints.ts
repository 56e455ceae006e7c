import { type UnboundHints, explainUnboundHints, isExternallyAccessible } from '../../../cluster/endpoint-choice.ts';
import { writtenAddresses } from '../../../cluster/endpoints.ts';
import { groupBy } from '../../../cluster/grouping.ts';
import type { ServicePort } from '../../../cluster/model.ts';
import {
  type EndpointSlice,
  type FieldPath,
  type Service,
  addressesOfPod,
  selectorWords,
} from '../../../cluster/objects.ts';
import { resolveTargetPort } from '../../../cluster/slices/make-slices.ts';
import { causeFinder } from '../../../cluster/slices/selector-causes.ts';
import { findUndeclaredPorts, nameOfSelected } from '../../../cluster/slices/slice-warnings.ts';
import { findLackingFamily, whyUnready } from '../../../cluster/slices/unready.ts';
import { type Behaviour, behavioursOf } from '../../../kube-proxy/releases.ts';
import type { LintInput, LintedService } from '../lint-input.ts';
import { type LintRule, type RuleFinding, claimRefused, claimedSocket, isServed, ofServices } from '../rule.ts';

export const familyWithoutEndpoints: LintRule<'family-without-endpoints'> = ofServices((service, input) => {
  const { name, ports, knowsEndpoints, source } = service;
  const lack = knowsEndpoints && ports.some(isServed) ? findLackingFamily(ports) : undefined;
  if (!lack) return undefined;
  const { port, other } = lack;
  return {
    details: { service: name, address: port.clusterIP.text, family: port.family, other },
    place: source.place(['spec', 'ipFamilies']),
    packet: claimRefused(port, input),
  };
});

/** Finds ports of headless Services that differ from their target ports. Clients connect directly to Pods, at the target port. */
export const headlessPort: LintRule<'headless-port'> = ofServices(
  ({ object: { spec }, name, skipped, selected, source }) => {
    const [first] = selected;
    if (skipped !== 'headless' || !first) return [];
    const pod = first.object.spec;
    return spec.ports.flatMap((port, i): readonly RuleFinding<'headless-port'>[] => {
      const target = resolveTargetPort(port, pod);
      const servesPort = pod.ports.some((own) => own.port === port.port && own.protocol === port.protocol);
      if (target === undefined || target === port.port || servesPort) return [];
      const details = { service: name, port: port.port, target, owner: nameOfSelected(first.object) };
      return [{ details, place: source.place(['spec', 'ports', i, 'port']) }];
    });
  },
);

type IdleHint = RuleFinding<'idle-hints'>;

interface AskingField {
  readonly field: string;
  readonly path: FieldPath;
  readonly needs: readonly Behaviour[];
}

const annotations = ['service.kubernetes.io/topology-aware-hints', 'service.kubernetes.io/topology-mode'] as const;

function askingOf({ metadata, spec }: Service): AskingField | undefined {
  const annotation = annotations.find((name) => /^auto$/i.test(metadata.annotations[name] ?? ''));
  if (annotation !== undefined) {
    return { field: annotation, path: ['metadata', 'annotations', annotation], needs: ['zone-hints'] };
  }
  const { trafficDistribution: value } = spec;
  if (value === '') return undefined;
  const needs: readonly Behaviour[] =
    value === 'PreferSameNode' ? ['node-hints'] : ['zone-hints', 'zone-hints-without-annotation'];
  return { field: `trafficDistribution ${value}`, path: ['spec', 'trafficDistribution'], needs };
}

/** Finds hints that have no effect, and fields that ask for hints but have no effect. */
export const idleHints: LintRule<'idle-hints'> = ofServices((service, input) => {
  if (service.ports.length === 0) return undefined;
  const asking = askingOf(service.object);
  return (asking && findIdleHint(asking, service, input)) ?? findUnbound(service, input);
});

function findIdleHint(
  { field, path, needs }: AskingField,
  { name, ports, slices, object, source }: LintedService,
  { loaded: { settings, gates } }: LintInput,
): IdleHint | undefined {
  const place = source.place(path);
  const about = { service: name, field };
  if (object.spec.internalTrafficPolicy === 'Local' && !ports.some(isExternallyAccessible)) {
    return { details: { ...about, problem: 'policy-local' }, place };
  }
  const { release } = settings;
  const behaviours = behavioursOf(release, gates);
  const behaviour = needs.find((each) => !behaviours.has(each));
  if (behaviour !== undefined) return { details: { ...about, problem: 'not-in-release', release, behaviour }, place };
  const endpoints = slices.flatMap((slice) => slice.object.endpoints).filter(({ status }) => status.ready);
  const areHinted = endpoints.some(({ status }) => status.zoneHints.length + status.nodeHints.length > 0);
  if (endpoints.length === 0 || areHinted) return undefined;
  return { details: { ...about, problem: 'no-hints', endpoints: endpoints.length }, place };
}

function findUnbound(
  { name, ports, source, knowsEndpoints }: LintedService,
  { nodes }: LintInput,
): readonly IdleHint[] {
  if (!knowsEndpoints || !ports.some(hasHints)) return [];
  const found = nodes.flatMap((node) =>
    node.cluster.addresses
      .portsOf(name)
      .flatMap((port) => {
        const why = explainUnboundHints(port, node.node);
        return why ? [{ node, port, why }] : [];
      })
      .slice(0, 1),
  );
  const reasons = groupBy(found, ({ why }) => (why.kind === 'endpoint-without-hint' ? why.endpoint : why.kind));
  return [...reasons.values()].map((own): IdleHint => {
    const [{ node, port, why }] = own;
    const of = { service: name, nodes: own.map((each) => each.node.nodeName), of: nodes.length };
    const zones = own.flatMap((each) => (each.why.kind === 'none-for-zone' ? each.why.zone : []));
    return {
      details: unboundDetails(why, of, [...new Set(zones)]),
      place: source.place(['metadata', 'name']),
      // This packet shows which endpoints the node uses.
      packet: { ...claimedSocket(port), from: 'node', to: port.clusterIP, node: node.nodeName, ends: ['delivered'] },
    };
  });
}

function unboundDetails(
  why: UnboundHints,
  of: { readonly service: string; readonly nodes: readonly string[]; readonly of: number },
  zones: readonly string[],
): IdleHint['details'] {
  switch (why.kind) {
    case 'endpoint-without-hint':
      return { problem: why.kind, ...of, endpoint: why.endpoint };
    case 'node-without-zone':
      return { problem: why.kind, ...of };
    case 'none-for-zone':
      return { problem: why.kind, ...of, zones };
  }
}

function hasHints({ endpoints }: ServicePort): boolean {
  return endpoints.some(({ status }) => status.zoneHints.length > 0);
}

/**
 * Finds Services without EndpointSlices in input that seems to come from a cluster, because it has Nodes or EndpointSlices and every
 * Service has an address. In a cluster, each Service with a selector has an EndpointSlice.
 */
export const noEndpointsGiven: LintRule<'no-endpoints-given'> = {
  check: ({ services, nodes, loaded: { inputs } }) => {
    const { workloads, pods, slices, endpoints } = inputs;
    if (workloads.length + pods.length > 0 || slices.length + endpoints.length + nodes.length === 0) return [];
    if (services.some(({ written, ports }) => ports.length > 0 && written.spec.clusterIP === '')) return [];
    return (
      services
        .filter(({ ports, knowsEndpoints }) => ports.length > 0 && !knowsEndpoints)
        // For a Service without a selector, someone writes the EndpointSlices by hand, and these may be in another file.
        .filter(({ object }) => nodes.length > 0 || object.spec.selector !== undefined)
        .map(({ name, source }) => ({
          details: { services: [name], selecting: 1, hasWorkloads: false },
          place: source.place(['metadata', 'name']),
        }))
    );
  },
};

/** Finds Services without an endpoint that accepts connections, if all endpoints are known or the workloads are scaled to 0. */
export const noReadyEndpoint: LintRule<'no-ready-endpoint'> = ofServices((service, input) => {
  const { name, object, ports, isScaledToZero, knowsEndpoints, source } = service;
  const [first] = ports;
  if (!first || !(knowsEndpoints || isScaledToZero) || ports.some(isServed)) return undefined;
  const why = whyUnready({ ...service, spec: object.spec });
  return (
    why && {
      details: { service: name, ...why },
      place: source.place(['metadata', 'name']),
      packet: claimRefused(first, input),
    }
  );
});

/**
 * Finds selectors that match none of a cluster's Pods, or none of the manifests' workloads and Pods. For a Service that is only in
 * manifests, a cluster's Pods do not count. EndpointSlices are out of date if the selector no longer matches their Pods, which must be in
 * the input.
 */
export const selectsNothing: LintRule<'selects-nothing'> = {
  check: (input) => {
    const { pods, workloads } = input.loaded.inputs;
    const hasManifests = workloads.length > 0 || pods.some(({ object }) => object.status === undefined);
    const known = new Set(pods.flatMap(({ object }) => addressesOfPod(object)));
    const findCause = causeFinder(input.loaded.inputs);
    return input.services.flatMap((service): readonly RuleFinding<'selects-nothing'>[] => {
      const { object, name, source, selected, skipped, slices, ports, isOfCluster, knowsEndpoints } = service;
      const selector = selectorWords(object.spec.selector);
      const [port] = ports;
      if (selector === '' || selected.length > 0 || skipped === 'external-name') return [];
      const isStale = slices.length > 0;
      if (isStale && !slices.some(({ object: slice }) => listsPod(slice, known))) return [];
      if (isOfCluster !== knowsEndpoints || !(isOfCluster || hasManifests)) return [];
      const { likely, isMeant } = findCause(object, isOfCluster);
      if (isMeant) return [];
      const details = { services: [name], selector, ...likely };
      if (isStale) return [{ details: { ...details, isStale }, place: source.place(['spec', 'selector']) }];
      const packet = isOfCluster && port ? claimRefused(port, input) : undefined;
      return [{ details, place: source.place(['spec', 'selector']), packet }];
    });
  },
};

function listsPod({ endpoints }: EndpointSlice, addressesOfPods: ReadonlySet<string>): boolean {
  return endpoints.some((endpoint) => writtenAddresses(endpoint).some((text) => addressesOfPods.has(text)));
}

export const undeclaredPort: LintRule<'undeclared-port'> = ofServices(({ object, name, selected, source }) =>
  findUndeclaredPorts({ service: { object, source }, label: name, pods: selected }),
);

export const unknownPort: LintRule<'unknown-port'> = {
  show: ({ port }, input, service) => {
    const own = service?.ports.find((each) => each.port === port);
    return own && claimRefused(own, input);
  },
};

export const unusedSlicePort: LintRule<'unused-slice-port'> = ofServices(
  ({ object: { spec }, name, skipped, slices }) => {
    if (skipped) return undefined;
    const known = new Set(spec.ports.map((port) => `${port.name}/${port.protocol}`));
    const written = slices
      .filter(({ object }) => object.endpoints.length > 0)
      .flatMap(({ object, source }) =>
        object.ports.map((port, i) => ({
          port,
          key: `${port.name}/${port.protocol}`,
          place: source.place(['ports', i]),
        })),
      );
    // If the EndpointSlices lack one of the Service's ports, unknown-port is the better finding.
    if ([...known].some((port) => !written.some(({ key }) => key === port))) return undefined;
    const found = new Map<string, RuleFinding<'unused-slice-port'>>();
    for (const { port, key, place } of written) {
      if (known.has(key) || found.has(key)) continue;
      found.set(key, { details: { service: name, port: portWords(port), ports: spec.ports.map(portWords) }, place });
    }
    return [...found.values()];
  },
);

function portWords({ name, protocol }: { readonly name: string; readonly protocol: string }): string {
  return name === '' ? protocol : `${name}/${protocol}`;
}
