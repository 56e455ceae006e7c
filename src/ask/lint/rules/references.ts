import { findNearest } from '../../../base/names.ts';
import { uniqueBy } from '../../../cluster/grouping.ts';
import { type Ingress, type IngressBackend, type Service, type Sourced, fullName } from '../../../cluster/objects.ts';
import { hasWord, makersByNamespace, nameOfMaker } from '../../../cluster/slices/selector-causes.ts';
import { skippingLabelOf } from '../../../kube-proxy/skipped.ts';
import { type LintRule, type RuleFinding, ofServices } from '../rule.ts';

export const ignoredService: LintRule<'ignored-service'> = {
  check: ({ loaded: { inputs, cluster } }) => {
    const labels = new Map(cluster.services.map((info) => [fullName(info), skippingLabelOf(info)]));
    return inputs.services.flatMap(({ object: { metadata }, source }) => {
      const service = fullName(metadata);
      const label = labels.get(service);
      if (label === undefined) return [];
      return [{ details: { service, label }, place: source.place(['metadata', 'labels', label]) }];
    });
  },
};

/**
 * Annotations and labels of Services, as documented by the control planes and load balancers that read them. Of similar names, such as
 * address-pool and address-pools, both are listed, so that neither counts as a misspelling of the other.
 */
const readKeys: readonly string[] = Object.entries({
  'service.kubernetes.io': 'headless service-proxy-name topology-mode topology-aware-hints load-balancer-cleanup',
  'service.alpha.kubernetes.io': 'tolerate-unready-endpoints',
  'endpointslice.kubernetes.io': 'skip-mirror managed-by',
  'endpoints.kubernetes.io': 'over-capacity last-change-trigger-time',
  'external-dns.alpha.kubernetes.io':
    'hostname internal-hostname target ttl access alias controller endpoints-type set-identifier cloudflare-proxied',
  'metallb.universe.tf': 'address-pool loadBalancerIPs allow-shared-ip ip-allocated-from-pool',
  'metallb.io': 'address-pool loadBalancerIPs allow-shared-ip ip-allocated-from-pool',
  'kube-vip.io': 'loadbalancerIPs loadbalancerHostname vipHost ignore requestedIP hwaddr egress',
  'lbipam.cilium.io': 'ips sharing-key sharing-cross-namespace',
  'io.cilium': 'lb-ipam-ips lb-ipam-sharing-key global-service service-affinity shared-service',
  'service.cilium.io': 'global shared affinity forwarding-mode lb-l7 node type',
  'service.beta.kubernetes.io':
    'aws-load-balancer-type aws-load-balancer-internal aws-load-balancer-scheme aws-load-balancer-name aws-load-balancer-nlb-target-type ' +
    'aws-load-balancer-proxy-protocol aws-load-balancer-ssl-cert aws-load-balancer-ssl-ports aws-load-balancer-backend-protocol ' +
    'aws-load-balancer-attributes aws-load-balancer-target-group-attributes aws-load-balancer-subnets aws-load-balancer-eip-allocations ' +
    'aws-load-balancer-security-groups aws-load-balancer-extra-security-groups aws-load-balancer-ip-address-type ' +
    'aws-load-balancer-cross-zone-load-balancing-enabled aws-load-balancer-additional-resource-tags ' +
    'azure-load-balancer-internal azure-load-balancer-internal-subnet azure-load-balancer-ipv4 azure-load-balancer-ipv6 ' +
    'azure-dns-label-name azure-load-balancer-resource-group azure-pip-name azure-shared-securityrule azure-load-balancer-tcp-idle-timeout',
  'cloud.google.com': 'neg backend-config app-protocols load-balancer-type l4-rbs network-tier',
  'networking.gke.io': 'load-balancer-type internal-load-balancer-allow-global-access internal-load-balancer-subnet',
}).flatMap(([domain, names]) => names.split(' ').map((name) => `${domain}/${name}`));

const knownKeys = new Set(readKeys);

export const misspelledKey: LintRule<'misspelled-key'> = ofServices(({ name, written: { metadata }, source }) =>
  (['annotations', 'labels'] as const).flatMap((field) =>
    Object.keys(metadata[field]).flatMap((key): readonly RuleFinding<'misspelled-key'>[] => {
      const near = key.includes('/') && !knownKeys.has(key) ? findNearest(key, readKeys, 1) : undefined;
      if (near === undefined) return [];
      const place = source.place(['metadata', field, key]);
      return [{ details: { service: name, key, near, field }, place }];
    }),
  ),
);

/** Finds Services and ports that an Ingress, route or StatefulSet names but that are not in the input. */
export const unknownService: LintRule<'unknown-service'> = {
  check: ({ loaded: { inputs } }) => {
    const { services, ingresses, workloads, unread } = inputs;
    if (unread.has('services')) return [];
    const known = new Map(services.map(({ object }) => [fullName(object.metadata), object]));
    const namespaces = new Set(services.map(({ object }) => object.metadata.namespace));
    /** Reports whether a Service is missing. If the input has no Service in its namespace, it may be in another input. */
    const isMissing = (namespace: string, name: string): boolean =>
      namespaces.has(namespace) && !known.has(fullName({ namespace, name }));
    const makers = makersByNamespace(inputs);
    const guess = (namespace: string, name: string) => {
      const maker = makers.get(namespace)?.find((each) => each.makes !== 'templates' && hasWord(name, each.name));
      return { near: near(fullName({ namespace, name })), ...(maker ? { maker: nameOfMaker(maker) } : {}) };
    };
    const near = (name: string): string | undefined => findNearest(name, [...known.keys()], 2);
    const ofStatefulSets = workloads.flatMap(({ object, source }): readonly RuleFinding<'unknown-service'>[] => {
      const { kind, metadata, template } = object;
      const { namespace } = metadata;
      const name = template.spec.subdomain;
      if (kind !== 'StatefulSet' || name === '' || !isMissing(namespace, name)) return [];
      const missing = fullName({ namespace, name });
      const owner = `${kind} ${fullName(metadata)}`;
      const details = { problem: 'service-name', owner, missing, ...guess(namespace, name) } as const;
      return [{ details, place: source.place(['spec', 'serviceName']) }];
    });
    const ofRoutes = ingresses.flatMap((ingress) =>
      listBackends(ingress).flatMap(({ service, namespace, port }): readonly RuleFinding<'unknown-service'>[] => {
        const owner = `${ingress.object.kind} ${fullName(ingress.object.metadata)}`;
        const place = ingress.source.place(['spec', 'rules']);
        const name = fullName({ namespace, name: service });
        if (isMissing(namespace, service)) {
          return [{ details: { problem: 'backend', owner, missing: name, ...guess(namespace, service) }, place }];
        }
        const own = known.get(name);
        if (!own || own.spec.type === 'ExternalName' || port === '' || hasPort(own, port)) return [];
        const ports = own.spec.ports.map((each) => (each.name === '' ? `${each.port}` : `${each.port} (${each.name})`));
        return [{ details: { problem: 'port', owner, service: name, port, ports }, place }];
      }),
    );
    return [...ofStatefulSets, ...ofRoutes];
  },
};

/** Lists each backend once. Leaves out names that an annotation defines, because some controllers use such a name for an action. */
function listBackends({
  object: { metadata, routes },
}: Sourced<Ingress>): readonly (IngressBackend & { service: string })[] {
  const annotations = Object.keys(metadata.annotations);
  const named = routes
    .flatMap(({ backends }) => backends)
    .flatMap((backend) => (backend.service === undefined ? [] : [{ ...backend, service: backend.service }]))
    .filter(({ service }) => !annotations.some((key) => key.endsWith(`.${service}`)));
  return uniqueBy(named, ({ namespace, service, port }) => `${namespace}/${service}:${port}`);
}

function hasPort({ spec }: Service, port: string): boolean {
  return spec.ports.some(({ name, port: number }) => String(number) === port || name === port);
}
