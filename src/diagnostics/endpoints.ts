import {
  anIP,
  container,
  deployment,
  endpoint,
  manifests,
  aNode,
  pod,
  aSelector,
  aService,
  slice,
  web,
} from './examples.ts';
import { nameSome } from '../base/join-words.ts';
import { printable, quote } from '../base/printable.ts';
import {
  severityBy,
  wordsBy,
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Texts,
  type Words,
} from './diagnostic-rows.ts';

const serviceNameLabel = 'kubernetes.io/service-name';

const zoneHelp = 'a zone is letters, digits, dashes, underscores and dots, 63 at most';

/** `found`: the ports that are there, "http/TCP" each. */
interface UnknownPort extends Texts<'service' | 'protocol'>, Lists<'found'> {}

function listFound({ found }: UnknownPort): string {
  return found.length === 0 ? 'none of their ports has a name' : `their ports: ${printable(nameSome(found))}`;
}

/** `selector` is that of a single Service, as "app=web"; `meant` are the labels that it may mean. */
interface SelectsNothing extends Lists<'services'>, Partial<Texts<'selector'>> {
  readonly meant?: string | undefined;
}

function describeSelectsNothing({ services, selector, meant }: SelectsNothing): Words {
  const names = nameSome(services);
  if (selector === undefined) {
    return `${services.length} Services (${names}) match no Pod in the input, so they have no endpoints`;
  }
  return [
    `${names} matches no Pod in the input (${printable(selector)}), so it has no endpoints`,
    meant && `did you mean ${printable(meant)}?`,
  ];
}

type Limited = Numbers<'count' | 'limit'>;

type LimitedPods = Limited & { readonly largest: { readonly name: string; readonly count: number } };

interface EndpointsFromPods {
  /** The Services whose endpoints are made from Pods of the input. */
  readonly services: readonly string[];
  /** How many Services keep the endpoints that the input holds. */
  readonly kept: number;
  /** Whether any endpoints were made, from Pods or from assumed Pods. */
  readonly made: boolean;
}

function describeOrigin({ services, kept, made }: EndpointsFromPods): string {
  const keep = `${kept} ${kept === 1 ? 'Service keeps' : 'Services keep'} the EndpointSlices or Endpoints in the input`;
  if (!made) return `Pods make no endpoints: ${keep}`;
  if (services.length === 0) return keep;
  const names = nameSome(services);
  const which = services.length === 1 ? names : `${services.length} Services (${names})`;
  const text = `the endpoints of ${which} are made from the Pods in the input, as the endpointslice controller makes them`;
  return kept === 0 ? text : `${text}; ${keep}`;
}

interface AssumedEndpoints {
  readonly pods: number;
  readonly workloads: readonly { readonly name: string; readonly pods: number }[];
}

interface NoEndpointsGiven {
  /** Those that the input holds no endpoints of. */
  readonly services: readonly string[];
  /** How many Services with a selector there are. */
  readonly selecting: number;
  readonly hasWorkloads: boolean;
}

type AssumedPods = Lists<'pods'>;

/** What is wrong with endpoints, and where they come from. */
export const endpointDiagnostics = {
  'assumed-endpoints': {
    severity: 'note',
    meaning: 'kpc assumes endpoints for workloads, as --assume-endpoints asks',
    example: () => manifests(aSelector + deployment(container), '--assume-endpoints=10.244.0.0/16'),
    words: ({ pods, workloads }: AssumedEndpoints) => {
      const names = nameSome(workloads.map((each) => `${each.pods} of ${each.name}`));
      const which = pods === 1 ? '1 ready Pod and its address are' : `${pods} ready Pods and their addresses are`;
      return `${which} assumed: ${names}; the manifest.json of a bundle lists all`;
    },
  },
  'bad-hint': {
    severity: 'warning',
    meaning: 'a hint of an endpoint is not a valid name of a zone or node',
    example: () => manifests(web + endpoint('hints: { forZones: [{ name: "zone a" }] }')),
    words: (details: Texts<'value'> & Numbers<'index'> & { readonly field: 'forNodes' | 'forZones' }) =>
      `${details.field}[${details.index}] ${quote(details.value)} is not a valid ${details.field === 'forZones' ? 'zone' : 'node'} name`,
  },
  'bad-zone': {
    severity: severityBy('of', 'warning', { Node: 'error' }),
    meaning: 'a zone is not valid in Kubernetes',
    example: () => manifests(web + aNode('', '{ topology.kubernetes.io/zone: "zone a" }')),
    words: wordsBy('of', {
      Node: ({ value }: Texts<'value'>) => [`the zone ${quote(value)} is not valid`, zoneHelp],
      endpoint: ({ field, value }: Texts<'field' | 'value'>) => [`${field} ${quote(value)} is left out`, zoneHelp],
    }),
  },
  'empty-selector': {
    severity: 'warning',
    meaning: 'the selector of a Service is empty: an API server stores it as no selector',
    example: () =>
      manifests(
        aService(`${anIP}, selector: {}, ports: [{ port: 80 }]`) + pod(container, 'phase: Running, podIP: 10.244.0.1'),
      ),
    words: ({ service }: Texts<'service'>) => [
      `the selector of ${service} is empty: here it takes all Pods of the namespace, but the API server stores it as none`,
      'name labels, or leave it out',
    ],
  },
  'endpoints-from-pods': {
    severity: 'note',
    meaning: 'kpc makes endpoints from the Pods in the input',
    example: () => manifests(aSelector + pod(container, 'phase: Running, podIP: 10.244.0.1')),
    words: describeOrigin,
  },
  'extra-addresses': {
    severity: 'warning',
    meaning: 'an endpoint has several addresses: kube-proxy uses only the first',
    example: () =>
      manifests(
        web + slice('addressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.244.0.1, 10.244.0.2] }]'),
      ),
    words: ({ index, count }: Numbers<'index' | 'count'>) => [
      `endpoints[${index}] has ${count} addresses: kube-proxy uses only the first`,
      'give each address an endpoint of its own',
    ],
  },
  'no-endpoints-given': {
    severity: 'warning',
    meaning: 'the input holds no endpoints of Services that have a selector',
    example: () => manifests(aSelector),
    words: ({ services, selecting, hasWorkloads }: NoEndpointsGiven) => {
      const names = nameSome(services);
      return [
        selecting === 1
          ? `the input holds no EndpointSlice or Endpoints of ${names}: the compiled rules refuse all connections to it`
          : `the input holds no EndpointSlices or Endpoints of ${services.length} of ${selecting} Services with a selector (${names}): the compiled rules refuse all connections to them`,
        `add them (kubectl get endpointslices -A -o yaml)${hasWorkloads ? ", or assume the input's workloads have ready Pods: --assume-endpoints" : ''}`,
      ];
    },
  },
  'no-pod-address': {
    severity: severityBy('problem', 'warning', { 'range-is-full': 'error' }),
    meaning: 'there is no address for an assumed Pod',
    example: () => manifests(aSelector + deployment(container), '--assume-endpoints=10.244.0.0/31'),
    words: wordsBy('problem', {
      'range-is-full': ({ networks, pods }: AssumedPods & Lists<'networks'>) => [
        `no address of ${nameSome(networks)} is free for ${pods.length} assumed Pods (${nameSome(pods)})`,
        'name a larger network',
      ],
      'host-network': ({ lack, pods }: AssumedPods & { readonly lack: 'Node' | 'address' }) => [
        `Pods on the host network have the addresses of their Nodes, and the input holds no ${lack === 'Node' ? 'Node' : 'address of these'}: ${nameSome(pods)} cannot be assumed`,
        'add the Nodes (kubectl get nodes -o yaml)',
      ],
    }),
  },
  'no-such-service': {
    severity: 'note',
    meaning: 'EndpointSlices or Endpoints belong to a Service that the input does not hold',
    example: () => manifests(web + endpoint('').replace('service-name: web', 'service-name: api')),
    words: ({ services }: Lists<'services'>) => [
      `the input holds EndpointSlices or Endpoints of ${printable(nameSome(services))}, but no such ${services.length === 1 ? 'Service' : 'Services'}: they are not used`,
      'add the Service, or leave them out',
    ],
  },
  'selects-nothing': {
    severity: 'warning',
    meaning: 'a Service matches no Pod in the input',
    example: () =>
      manifests(aSelector + pod(container, 'phase: Running, podIP: 10.244.0.1').replace('app: web', 'app: api')),
    words: describeSelectsNothing,
  },
  'slice-without-service': {
    severity: 'warning',
    meaning: 'an EndpointSlice does not name its Service, and kube-proxy skips it',
    example: () =>
      manifests(web + slice('addressType: IPv4').replace(', labels: { kubernetes.io/service-name: web }', '')),
    // `service` is what the label says, if that is no name; undefined without a label.
    words: ({ service }: { readonly service?: string | undefined }) => [
      `kube-proxy skips this EndpointSlice: ${service === undefined ? `it has no label ${serviceNameLabel}` : `no Service can have the name ${quote(service)}`}`,
      `write the name of its Service as the label ${serviceNameLabel}`,
    ],
  },
  'too-many': {
    severity: severityBy('of', 'warning', { workloads: 'error', 'selected-pods': 'error' }),
    meaning: 'there are more endpoints, ports or Pods than the API server or kpc takes',
    example: () =>
      manifests(
        web +
          endpoint(`hints: { forZones: [${Array.from({ length: 9 }, (_, i) => `{ name: zone-${i} }`).join(', ')}] }`),
      ),
    words: wordsBy('of', {
      slice: ({ field, count, limit }: Limited & { readonly field: 'endpoints' | 'ports' }) => [
        `the EndpointSlice has ${count} ${field}, and the API server takes ${limit} in one`,
        'use more slices',
      ],
      endpoint: ({ index, count, limit }: Limited & Numbers<'index'>) =>
        `endpoints[${index}] has ${count} addresses, and the API server takes ${limit}; kube-proxy uses only the first`,
      hints: ({ field, count, limit }: Limited & Texts<'field'>) =>
        `${field} has ${count} hints, and the API server takes ${limit}`,
      workloads: ({ count, limit, largest }: LimitedPods) =>
        `the workloads of the input come to ${count} Pods, and the limit is ${limit}: ${largest.name} alone has ${largest.count}`,
      'selected-pods': ({ count, limit, largest }: LimitedPods) => [
        `the Services of the input select ${count} Pods, counting a Pod once for each Service that selects it, and the limit for an input of this size is ${limit}: ${largest.name} alone selects ${largest.count}`,
        'select fewer Pods, or give their EndpointSlices',
      ],
    }),
  },
  'unknown-slice-port': {
    severity: 'warning',
    meaning: 'no EndpointSlice of a Service has a port with the name and protocol of the Service port',
    example: () =>
      manifests(
        aService(`${anIP}, ports: [{ name: http, port: 80 }]`) + endpoint('').replace('{ port', '{ name: htpp, port'),
      ),
    words: (details: UnknownPort & Texts<'name'> & Numbers<'port'>) => {
      const { service, port, protocol, name } = details;
      const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${printable(name)}`;
      return [
        `no EndpointSlice or Endpoints of ${service} has a ${what}, so the Service port ${port} has no endpoints`,
        listFound(details),
      ];
    },
  },
  'unknown-target-port': {
    severity: 'warning',
    meaning: 'no container has a port with the name that a Service port targets',
    example: () =>
      manifests(
        aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: htpp }]`) +
          pod(container, 'phase: Running, podIP: 10.244.0.1'),
      ),
    words: (details: UnknownPort & Texts<'targetPort'>) => [
      `no container of the Pods that ${details.service} selects has a ${details.protocol} port named ${printable(details.targetPort)}, so this port has no endpoints`,
      listFound(details),
    ],
  },
} satisfies DiagnosticTable;
