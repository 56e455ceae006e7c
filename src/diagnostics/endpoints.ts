import { nameSome } from '../base/name-some.ts';
import { printable } from '../base/printable.ts';
import { quote } from '../base/wording.ts';
import type { DiagnosticTable } from './table.ts';

const serviceNameLabel = 'kubernetes.io/service-name';

const zoneShape = 'a zone is letters, digits, dashes, underscores and dots, 63 at most';

/** A label, or a field of an endpoint, that is no zone. */
type ZoneProblem =
  | { readonly of: 'Node'; readonly value: string }
  | { readonly of: 'endpoint'; readonly field: string; readonly value: string };

/** An object that names a Service. */
interface StrayObject {
  readonly kind: 'EndpointSlice' | 'Endpoints';
  /** "namespace/name" of the Service. */
  readonly service: string;
}

/** The Service that a stray object probably means. */
export type MeantService =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'namespace'; readonly name: string; readonly namespace: string };

type NoSuchService =
  | (StrayObject & { readonly problem: 'one'; readonly meant?: MeantService | undefined })
  | { readonly problem: 'several'; readonly services: readonly string[] };

function describeNoSuchService(details: NoSuchService): string {
  if (details.problem === 'several') {
    const names = printable(nameSome(details.services));
    return `the input holds EndpointSlices or Endpoints of ${details.services.length} Services, but not these Services (${names}): they are not used`;
  }
  const { kind, service, meant } = details;
  const what = kind === 'Endpoints' ? 'these are Endpoints' : 'this is an EndpointSlice';
  return `${what} of ${printable(service)}, but the input holds no Service of that name: ${adviseOnStray(meant)}`;
}

function adviseOnStray(meant: MeantService | undefined): string {
  switch (meant?.kind) {
    case 'name':
      return `did you mean ${meant.name}?`;
    case 'namespace':
      return `the Service ${meant.name} without endpoints is in namespace ${meant.namespace}`;
    case undefined:
      return 'add the Service, or leave this out';
  }
}

/** The port of a slice that a Service port may mean. */
export type MeantSlicePort =
  | { readonly kind: 'protocol'; readonly protocol: string }
  | { readonly kind: 'no-name' | 'other-name'; readonly name: string }
  | { readonly kind: 'missing-name' };

interface UnknownSlicePort {
  /** "namespace/name". */
  readonly service: string;
  readonly port: number;
  readonly protocol: string;
  /** '' where it has none. */
  readonly name: string;
  readonly meant?: MeantSlicePort | undefined;
}

function describeSlicePort({ service, port, protocol, name, meant }: UnknownSlicePort): string {
  const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${name}`;
  return `no EndpointSlice or Endpoints of ${service} has a ${what}, so the Service port ${port} has no endpoints${adviseOnPort(name, meant)}`;
}

function adviseOnPort(name: string, meant: MeantSlicePort | undefined): string {
  switch (meant?.kind) {
    case 'protocol':
      return `; the port of that name is ${meant.protocol}`;
    case 'no-name':
      return `; leave out the name ${printable(meant.name)}`;
    case 'other-name':
      return `; did you mean ${printable(name)} instead of ${printable(meant.name)}?`;
    case 'missing-name':
      return `; write name: ${name} at the port that has no name`;
    case undefined:
      return '';
  }
}

type Labels = Readonly<Record<string, string>>;

/** The Pods that a Service may mean. `workload` is a Pod, or an object that makes Pods: "Deployment shop/web". */
export type NearPods =
  | { readonly kind: 'no-replicas'; readonly workload: string }
  | {
      readonly kind: 'other-labels';
      readonly workload: string;
      readonly differences: readonly LabelDifference[];
    }
  | { readonly kind: 'other-namespace'; readonly workload: string; readonly namespace: string };

/** A label that the selector asks for, with the value that the workload has; undefined where it lacks the label. */
export interface LabelDifference {
  readonly key: string;
  readonly value?: string | undefined;
}

type SelectsNothing =
  | { readonly services: readonly [string]; readonly selector: Labels; readonly near?: NearPods | undefined }
  | { readonly services: readonly string[] };

function describeSelectsNothing(details: SelectsNothing): string {
  const { services } = details;
  const names = nameSome(services);
  if (!('selector' in details))
    return `${services.length} Services (${names}) select no Pod of the input, and have no endpoints`;
  const selector = printable(
    Object.entries(details.selector)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
  );
  if (!details.near) return `${names} selects no Pod of the input (${selector}), and has no endpoints`;
  return `${names} selects no Pod (${selector}), and has no endpoints: ${describeNear(details.near)}`;
}

function describeNear(near: NearPods): string {
  switch (near.kind) {
    case 'no-replicas':
      return `${near.workload} asks for no Pods`;
    case 'other-labels': {
      const labels = near.differences.map(({ key, value }) => (value === undefined ? `no ${key}` : `${key}=${value}`));
      return `${near.workload} has ${printable(labels.join(', '))}`;
    }
    case 'other-namespace':
      return `${near.workload} has all these labels, but it is in namespace ${near.namespace}`;
  }
}

interface UnknownTargetPort {
  /** "namespace/name". */
  readonly service: string;
  readonly targetPort: string;
  readonly protocol: string;
  /** The name that the Service may mean, or the protocol of the port with that name. */
  readonly meant?: { readonly kind: 'name' | 'protocol'; readonly value: string } | undefined;
}

function describeTargetPort({ service, targetPort, protocol, meant }: UnknownTargetPort): string {
  const text = `no container of the Pods that ${service} selects has a ${protocol} port named ${printable(targetPort)}, so this port has no endpoints`;
  switch (meant?.kind) {
    case 'name':
      return `${text}: did you mean ${printable(meant.value)}?`;
    case 'protocol':
      return `${text}: the port of that name is ${meant.value}`;
    case undefined:
      return text;
  }
}

type TooMany =
  | { readonly of: 'slice'; readonly field: 'endpoints' | 'ports'; readonly count: number; readonly limit: number }
  | { readonly of: 'endpoint'; readonly index: number; readonly count: number; readonly limit: number }
  | { readonly of: 'hints'; readonly field: string; readonly count: number; readonly limit: number }
  | {
      readonly of: 'workloads' | 'selected-pods';
      readonly count: number;
      readonly limit: number;
      readonly largest?: { readonly name: string; readonly count: number } | undefined;
    };

function describeTooMany(details: TooMany): string {
  const { count, limit } = details;
  switch (details.of) {
    case 'slice':
      return `the EndpointSlice has ${count} ${details.field}, and the API server takes ${limit} in one: use more slices`;
    case 'endpoint':
      return `endpoints[${details.index}] has ${count} addresses, and the API server takes ${limit}; kube-proxy uses only the first`;
    case 'hints':
      return `${details.field} has ${count} hints, and the API server takes ${limit}`;
    case 'workloads': {
      const { largest } = details;
      const most = largest ? `: ${largest.name} alone has ${largest.count}` : '';
      return `the workloads of the input come to ${count} Pods, and the limit is ${limit}${most}`;
    }
    case 'selected-pods': {
      const { largest } = details;
      const most = largest ? `${largest.name} alone selects ${largest.count}; ` : '';
      return `the Services of the input select ${count} Pods, counting a Pod once for each Service that selects it, and the limit for an input of this size is ${limit}: ${most}select fewer Pods, or give their EndpointSlices`;
    }
  }
}

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

function describeAssumed({ pods, workloads }: AssumedEndpoints): string {
  const names = nameSome(workloads.map((each) => `${each.pods} of ${each.name}`));
  const which = pods === 1 ? '1 ready Pod and its address are' : `${pods} ready Pods and their addresses are`;
  return `${which} assumed: ${names}; the manifest.json of a bundle lists all`;
}

interface NoEndpointsGiven {
  /** Those that the input holds no endpoints of. */
  readonly services: readonly string[];
  /** How many Services with a selector there are. */
  readonly selecting: number;
  readonly hasWorkloads: boolean;
}

function describeNoEndpoints({ services, selecting, hasWorkloads }: NoEndpointsGiven): string {
  const names = nameSome(services);
  const which =
    selecting === 1
      ? `the input holds no EndpointSlice or Endpoints of ${names}: the compiled rules refuse all connections to it`
      : `the input holds no EndpointSlices or Endpoints of ${services.length} of ${selecting} Services with a selector (${names}): the compiled rules refuse all connections to them`;
  const assume = hasWorkloads ? ', or take the workloads of the input to have ready Pods: --assume-endpoints' : '';
  return `${which}; add them (kubectl get endpointslices -A -o yaml)${assume}`;
}

type PodAddressProblem =
  | { readonly problem: 'range-is-full'; readonly networks: readonly string[]; readonly pods: readonly string[] }
  | { readonly problem: 'host-network'; readonly lack: 'Node' | 'address'; readonly pods: readonly string[] };

function describePodAddress(details: PodAddressProblem): string {
  switch (details.problem) {
    case 'range-is-full':
      return `no address of ${nameSome(details.networks)} is free for ${details.pods.length} assumed Pods (${nameSome(details.pods)}): name a larger network`;
    case 'host-network':
      return `Pods on the host network have the addresses of their Nodes, and the input holds no ${details.lack === 'Node' ? 'Node' : 'address of these'}: ${nameSome(details.pods)} cannot be assumed; add the Nodes (kubectl get nodes -o yaml)`;
  }
}

/** What is wrong with endpoints, and where they come from. */
export const endpointDiagnostics = {
  'assumed-endpoints': {
    severity: 'note',
    meaning: 'kpc assumes endpoints for workloads, as --assume-endpoints asks',
    words: describeAssumed,
  },
  'bad-hint': {
    severity: 'warning',
    meaning: 'a hint of an endpoint is not a valid name of a zone or node',
    words: ({
      field,
      index,
      value,
    }: {
      readonly field: 'forNodes' | 'forZones';
      readonly index: number;
      readonly value: string;
    }) => `${field}[${index}] ${quote(value)}: not a valid ${field === 'forZones' ? 'zone' : 'node'} name`,
  },
  'bad-zone': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ of }: ZoneProblem) => (of === 'Node' ? 'error' : 'warning'),
    },
    meaning: 'a zone is not valid in Kubernetes',
    words: (details: ZoneProblem) =>
      details.of === 'Node'
        ? `the zone ${quote(details.value)} is not valid: ${zoneShape}`
        : `${details.field} ${quote(details.value)} is left out: ${zoneShape}`,
  },
  'empty-selector': {
    severity: 'warning',
    meaning: 'the selector of a Service is empty: an API server stores it as no selector',
    words: ({ service }: { readonly service: string }) =>
      `the selector of ${service} is empty: here it takes all Pods of the namespace, but the API server stores it as none; name labels, or leave it out`,
  },
  'endpoints-from-pods': {
    severity: 'note',
    meaning: 'kpc makes endpoints from the Pods in the input',
    words: describeOrigin,
  },
  'extra-addresses': {
    severity: 'warning',
    meaning: 'an endpoint has several addresses: kube-proxy uses only the first',
    words: ({ index, count }: { readonly index: number; readonly count: number }) =>
      `endpoints[${index}] has ${count} addresses: kube-proxy uses only the first`,
  },
  'no-endpoints-given': {
    severity: 'warning',
    meaning: 'the input holds no endpoints of Services that have a selector',
    words: describeNoEndpoints,
  },
  'no-pod-address': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: PodAddressProblem) => (problem === 'range-is-full' ? 'error' : 'warning'),
    },
    meaning: 'there is no address for an assumed Pod',
    words: describePodAddress,
  },
  'no-such-service': {
    severity: {
      among: ['warning', 'note'],
      weigh: ({ problem }: NoSuchService) => (problem === 'several' ? 'note' : 'warning'),
    },
    meaning: 'EndpointSlices or Endpoints belong to a Service that the input does not hold',
    words: describeNoSuchService,
  },
  'selects-nothing': {
    severity: 'warning',
    meaning: 'a Service selects no Pod of the input',
    words: describeSelectsNothing,
  },
  'slice-without-service': {
    severity: 'warning',
    meaning: 'an EndpointSlice does not name its Service, and kube-proxy skips it',
    words: ({
      service,
    }: {
      /** What the label says, where that is no name; undefined where there is no label. */
      readonly service?: string | undefined;
    }) =>
      service === undefined
        ? `kube-proxy skips this EndpointSlice: it has no label ${serviceNameLabel} with the name of its Service`
        : `kube-proxy skips this EndpointSlice: no Service can have the name ${quote(service)}`,
  },
  'too-many': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ of }: TooMany) => (of === 'workloads' || of === 'selected-pods' ? 'error' : 'warning'),
    },
    meaning: 'there are more endpoints, ports or Pods than the API server or kpc takes',
    words: describeTooMany,
  },
  'unknown-slice-port': {
    severity: 'warning',
    meaning: 'no EndpointSlice of a Service has a port with the name and protocol of the Service port',
    words: describeSlicePort,
  },
  'unknown-target-port': {
    severity: 'warning',
    meaning: 'no container has a port with the name that a Service port targets',
    words: describeTargetPort,
  },
} satisfies DiagnosticTable;
