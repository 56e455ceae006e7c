import { toNodePort, isOpen, ofRestricted, type LintRule } from '../../rule.ts';

/** Node ports beside source ranges, which do not bind them. */
export const openNodePort: LintRule<'open-node-port'> = ofRestricted((service, input) => {
  const { name, written, ports, source } = service;
  const { spec, ingress } = written;
  const own = spec.ports.filter(({ nodePort }) => nodePort !== 0);
  if (isOpen(service) || (own.length === 0 && !spec.allocateLoadBalancerNodePorts)) return undefined;
  // A Service with both addresses is one of a cluster, which has given all node ports that it gives.
  if (own.length === 0 && ingress.length > 0 && spec.clusterIP !== '') return undefined;
  const port = ports.find(({ nodePort }) => own.some((each) => each.nodePort === nodePort));
  return {
    details: { service: name, ports: own.map(({ nodePort, protocol }) => `${nodePort}/${protocol}`) },
    place: source.place(['spec', 'loadBalancerSourceRanges']),
    packet: port && toNodePort(port, input),
  };
});
