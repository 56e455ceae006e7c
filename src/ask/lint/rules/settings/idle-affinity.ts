import { programs } from '../../../../kube-proxy/modes.ts';
import { ofServices, type LintRule } from '../../rule.ts';

/** Chooses by a hash of the client's address alone (ip_vs_sh.c). kube-proxy sets mh-port for mh, so there the client's port counts too. */
const hashing = 'sh';

/** Finds session affinity without effect, or in addition to a scheduler that already provides it. */
export const idleAffinity: LintRule<'idle-affinity'> = ofServices(
  ({ object, name, skipped, ports: [port], source }, { loaded: { settings } }) => {
    const { sessionAffinity, sessionAffinityTimeout: seconds } = object.spec;
    if (sessionAffinity === 'None') return undefined;
    const place = source.place(['spec', 'sessionAffinity']);
    if (skipped === 'headless') return { details: { problem: 'headless', service: name }, place };
    if (!port || !programs(settings.mode, 'virtualServers')) return undefined;
    const scheduler = port.scheduler || settings.ipvs.scheduler;
    return scheduler === hashing
      ? { details: { problem: 'scheduler', service: name, scheduler, seconds }, place }
      : undefined;
  },
);
