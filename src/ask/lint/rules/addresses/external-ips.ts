import { isDeprecated } from '../../../../kube-proxy/announced.ts';
import { ofServices, type LintRule } from '../../rule.ts';

export const externalIPs: LintRule<'external-ips'> = ofServices(
  ({ object, name, ports, source }, { loaded: { settings } }) => {
    const isProgrammed = object.spec.externalIPs.length > 0 && ports.some((port) => port.externalIPs.length > 0);
    if (!isProgrammed || !isDeprecated('external-ips', settings.release)) return undefined;
    return { details: { services: [name] }, place: source.place(['spec', 'externalIPs', 0]) };
  },
);
