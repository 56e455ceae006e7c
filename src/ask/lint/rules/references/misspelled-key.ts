import { findNearest } from '../../../../base/names.ts';
import { ofServices, type RuleFinding, type LintRule } from '../../rule.ts';

/**
 * Annotations and labels that control planes and load balancers read from Services, as documented. Similar names, such as address-pool and
 * address-pools, are both listed, so that neither counts as a misspelling of the other.
 */
const known: readonly string[] = Object.entries({
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

const names = new Set(known);

export const misspelledKey: LintRule<'misspelled-key'> = ofServices(({ name, written: { metadata }, source }) =>
  (['annotations', 'labels'] as const).flatMap((field) =>
    Object.keys(metadata[field]).flatMap((key): readonly RuleFinding<'misspelled-key'>[] => {
      const near = key.includes('/') && !names.has(key) ? findNearest(key, known, 1) : undefined;
      if (near === undefined) return [];
      const place = source.place(['metadata', field, key]);
      return [{ details: { service: name, key, near, field }, place }];
    }),
  ),
);
