import { toNodePort, admitsEveryone, ofRestricted, type LintRule } from '../../rule.ts';

/** Finds node ports of a Service with source ranges, which do not apply to node ports. */
export const openNodePort: LintRule<'open-node-port'> = ofRestricted((service, input) => {
  const { name, written, ports, source } = service;
  const { spec, ingress } = written;
  const own = spec.ports.filter(({ nodePort }) => nodePort !== 0);
  if (admitsEveryone(service) || (own.length === 0 && !spec.allocateLoadBalancerNodePorts)) return undefined;
  // A Service with a cluster IP and a load balancer address comes from a cluster, which would already have assigned node ports.
  if (own.length === 0 && ingress.length > 0 && spec.clusterIP !== '') return undefined;
  const port = ports.find(({ nodePort }) => own.some((each) => each.nodePort === nodePort));
  return {
    details: { service: name, ports: own.map(({ nodePort, protocol }) => `${nodePort}/${protocol}`) },
    place: source.place(['spec', 'loadBalancerSourceRanges']),
    packet: port && toNodePort(port, input),
  };
});
