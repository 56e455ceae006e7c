import { anIP, container, deployment, endpoint, manifests, pod, aSelector, aService, slice, web } from './examples.ts';
import { nameSome } from '../base/join-words.ts';
import { printable, quote } from '../base/printable.ts';
import { familyNames, type Family } from '../kernel/family.ts';
import {
  row,
  severityBy,
  wordsBy,
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Texts,
} from './diagnostic-rows.ts';

const serviceNameLabel = 'kubernetes.io/service-name';

/** `found`: the ports that are there, "http/TCP" each. */
interface UnknownPort extends Texts<'service' | 'protocol'>, Lists<'found'> {}

function listFound({ found }: UnknownPort): string {
  return found.length === 0 ? 'none of their ports has a name' : `their ports: ${printable(nameSome(found))}`;
}

type Limited = Numbers<'count' | 'limit'>;

/** What is wrong with endpoints, and where they come from. */
export const endpointDiagnostics = {
  'assumed-endpoints': row('note', {
    meaning: 'kpc assumes endpoints for workloads, as --assume-endpoints asks',
    example: manifests(aSelector + deployment(container), '--assume-endpoints=10.244.0.0/16'),
    // "3 of Deployment default/web" each.
    words: ({ pods, workloads }: Numbers<'pods'> & Lists<'workloads'>) => {
      const which = pods === 1 ? '1 ready Pod and its address are' : `${pods} ready Pods and their addresses are`;
      return `${which} assumed: ${nameSome(workloads)}; the manifest.json of a bundle lists all`;
    },
  }),
  'empty-selector': row('warning', {
    meaning: 'the selector of a Service is empty: an API server stores it as no selector',
    example: manifests(
      aService(`${anIP}, selector: {}, ports: [{ port: 80 }]`) + pod(container, 'phase: Running, podIP: 10.244.0.1'),
    ),
    words: ({ service }: Texts<'service'>) => [
      `the selector of ${service} is empty: here it takes all Pods of the namespace, but the API server stores it as none`,
      'name labels, or leave it out',
    ],
  }),
  'endpoints-from-pods': row('note', {
    meaning: 'kpc makes endpoints from the Pods in the input',
    example: manifests(aSelector + pod(container, 'phase: Running, podIP: 10.244.0.1')),
    // The Services whose endpoints are made from Pods of the input, and how many keep those that the input holds.
    words: ({ services, kept }: Lists<'services'> & Numbers<'kept'>) => {
      const which = services.length === 1 ? nameSome(services) : `${services.length} Services (${nameSome(services)})`;
      const made = `the endpoints of ${which} are made from the Pods in the input, as the endpointslice controller makes them`;
      const keep = `${kept} ${kept === 1 ? 'Service keeps' : 'Services keep'} the EndpointSlices or Endpoints in the input`;
      return [...(services.length > 0 ? [made] : []), ...(kept > 0 ? [keep] : [])].join('; ');
    },
  }),
  'extra-addresses': row('warning', {
    meaning: 'an endpoint has several addresses: kube-proxy uses only the first',
    example: manifests(
      web + slice('addressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.244.0.1, 10.244.0.2] }]'),
    ),
    words: ({ index, count }: Numbers<'index' | 'count'>) => [
      `endpoints[${index}] has ${count} addresses: kube-proxy uses only the first`,
      'give each address an endpoint of its own',
    ],
  }),
  'no-endpoints-given': row('warning', {
    meaning: 'the input holds no endpoints of Services that have a selector',
    example: manifests(aSelector),
    // `services` are those without, `selecting` is how many have a selector.
    words: (details: Lists<'services'> & Numbers<'selecting'> & { readonly hasWorkloads: boolean }) => {
      const { services, selecting, hasWorkloads } = details;
      const names = nameSome(services);
      return [
        selecting === 1
          ? `the input holds no EndpointSlice or Endpoints of ${names}: the compiled rules refuse all connections to it`
          : `the input holds no EndpointSlices or Endpoints of ${services.length} of ${selecting} Services with a selector (${names}): the compiled rules refuse all connections to them`,
        `add them (kubectl get endpointslices -A -o yaml)${hasWorkloads ? ", or assume the input's workloads have ready Pods: --assume-endpoints" : ''}`,
      ];
    },
  }),
  'no-pod-address': row(
    severityBy('problem', 'error', { 'host-network': 'warning', 'no-network-of-family': 'warning' }),
    {
      meaning: 'there is no address for an assumed Pod',
      example: manifests(aSelector + deployment(container), '--assume-endpoints'),
      words: wordsBy('problem', {
        'no-network': [
          'assumed endpoints need the network of the Pods',
          'name it, as in --assume-endpoints=10.244.0.0/16, or with --cluster-cidr, or give Nodes with podCIDRs',
        ],
        'no-network-of-family': ({ family }: { readonly family: Family }) => [
          `assumed Pods have no ${familyNames[family]} address, though Services have`,
          'name a network of each family, such as --assume-endpoints=10.244.0.0/16,fd00:10:244::/56',
        ],
        'host-network': ({ pods }: Lists<'pods'>) => [
          `Pods on the host network have the addresses of their Nodes, and the input holds none of these: ${nameSome(pods)} cannot be assumed`,
          'add the Nodes (kubectl get nodes -o yaml)',
        ],
      }),
    },
  ),
  'no-such-service': row('note', {
    meaning: 'EndpointSlices or Endpoints belong to a Service that the input does not hold',
    example: manifests(web + endpoint('').replace('service-name: web', 'service-name: api')),
    words: ({ services }: Lists<'services'>) => [
      `the input holds EndpointSlices or Endpoints of ${printable(nameSome(services))}, but no such ${services.length === 1 ? 'Service' : 'Services'}: they are not used`,
      'add the Service, or leave them out',
    ],
  }),
  'selects-nothing': row('warning', {
    meaning: 'a Service matches no Pod in the input',
    example: manifests(aSelector + pod(container, 'phase: Running, podIP: 10.244.0.1').replace('app: web', 'app: api')),
    // `selector` is that of the first, as "app=web".
    words: ({ services, selector }: Lists<'services'> & Texts<'selector'>) =>
      services.length === 1
        ? `${nameSome(services)} matches no Pod in the input (${printable(selector)}), so it has no endpoints`
        : `${services.length} Services (${nameSome(services)}) match no Pod in the input, so they have no endpoints`,
  }),
  'slice-without-service': row('warning', {
    meaning: 'an EndpointSlice does not name its Service, and kube-proxy skips it',
    example: manifests(web + slice('addressType: IPv4').replace(', labels: { kubernetes.io/service-name: web }', '')),
    // `service` is what the label says, if that is no name; undefined without a label.
    words: ({ service }: { readonly service?: string | undefined }) => [
      `kube-proxy skips this EndpointSlice: ${service === undefined ? `it has no label ${serviceNameLabel}` : `no Service can have the name ${quote(service)}`}`,
      `write the name of its Service as the label ${serviceNameLabel}`,
    ],
  }),
  'too-many': row('warning', {
    meaning: 'an EndpointSlice has more endpoints or ports than the API server takes',
    example: () =>
      manifests(
        web + endpoint('').replace(/endpoints:.*/, `endpoints: [${'{ addresses: [10.244.0.1] }, '.repeat(1001)}]`),
      ),
    words: ({ field, count, limit }: Limited & Texts<'field'>) => [
      `the EndpointSlice has ${count} ${field}, and the API server takes ${limit} in one`,
      'use more slices',
    ],
  }),
  'too-many-pods': row('error', {
    meaning: 'the Pods of the input, or those that its Services select, are more than kpc takes',
    example: manifests(aSelector + deployment(container).replace('replicas: 3', 'replicas: 200000'), '--assume'),
    // A Pod counts once for each Service that selects it.
    words: ({ of, count, limit, largest, most }: Limited & Texts<'of' | 'largest'> & Numbers<'most'>) =>
      `the ${of} of the input come to ${count} Pods, and the limit is ${limit}: ${largest} alone has ${most}`,
  }),
  'unknown-slice-port': row('warning', {
    meaning: 'no EndpointSlice of a Service has a port with the name and protocol of the Service port',
    example: manifests(
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
  }),
  'unknown-target-port': row('warning', {
    meaning: 'no container has a port with the name that a Service port targets',
    example: manifests(
      aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: htpp }]`) +
        pod(container, 'phase: Running, podIP: 10.244.0.1'),
    ),
    words: (details: UnknownPort & Texts<'targetPort'>) => [
      `no container of the Pods that ${details.service} selects has a ${details.protocol} port named ${printable(details.targetPort)}, so this port has no endpoints`,
      listFound(details),
    ],
  }),
} satisfies DiagnosticTable;
