import { claimedSocket, outsideAddresses, ofServices, type LintRule } from '../../rule.ts';

export const unservedAddress: LintRule<'unserved-address'> = ofServices((service, { nodes }) => {
  const { ports, name, written } = service;
  const [first] = ports;
  // A Service without a cluster IP gets its families from the cluster.
  if (!first || (written.spec.clusterIP === '' && written.spec.ipFamilies.length === 0)) return undefined;
  const families = new Set(ports.map(({ family }) => family));
  const node = nodes[0]?.nodeName ?? '';
  return outsideAddresses(service)
    .filter(({ address }) => !families.has(address.family))
    .map(({ address, place }) => ({
      details: { service: name, address: address.text, family: address.family },
      place,
      packet: { ...claimedSocket(first), from: 'external', to: address, node, ends: ['forwarded'] },
    }));
});
