import { parseAddress } from '../../../../kernel/address.ts';
import { behavioursOf } from '../../../../kube-proxy/releases.ts';
import { claimedSocket, admitsEveryone, ofRestricted, type RuleFinding, type LintRule } from '../../rule.ts';

export const unboundSourceRanges: LintRule<'unbound-source-ranges'> = ofRestricted((service, { nodes, loaded }) => {
  if (admitsEveryone(service)) return undefined;
  const { written, name, ports, source } = service;
  const knowsIpMode = behavioursOf(loaded.settings.release, loaded.gates).has('load-balancer-ip-mode');
  return written.ingress.flatMap(({ ip, hostname, ipMode }, i): readonly RuleFinding<'unbound-source-ranges'>[] => {
    const place = source.place(['status', 'loadBalancer', 'ingress', i]);
    const about = { service: name };
    if (ip === undefined) {
      return hostname === undefined ? [] : [{ details: { ...about, problem: 'hostname', hostname }, place }];
    }
    const to = parseAddress(ip);
    const port = to && ports.find(({ family }) => family === to.family);
    if (!port) return [];
    const claim = { ...claimedSocket(port), from: 'external', to, node: nodes[0]?.nodeName ?? '' } as const;
    if (ipMode === 'Proxy' && knowsIpMode) {
      const details = { ...about, problem: 'ip-mode-proxy', address: ip } as const;
      return [{ details, place, packet: { ...claim, ends: ['forwarded'] } }];
    }
    if (port.sourceRanges.length > 0) return [];
    const details = { ...about, problem: 'other-family', address: ip, family: to.family } as const;
    return [{ details, place, packet: { ...claim, ends: ['delivered'] } }];
  });
});
