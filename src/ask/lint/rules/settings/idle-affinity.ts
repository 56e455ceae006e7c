import { programs } from '../../../../kube-proxy/modes.ts';
import { ofServices, type LintRule } from '../../rule.ts';

/** Schedulers that choose by a hash of the client's address: ip_vs_sh.c, and ip_vs_mh.c without the flag mh-port. */
const hashing: ReadonlySet<string> = new Set(['sh', 'mh']);

/** Finds session affinity without effect, or in addition to a scheduler that already provides it. */
export const idleAffinity: LintRule<'idle-affinity'> = ofServices(
  ({ object, name, skipped, ports: [port], source }, { loaded: { settings } }) => {
    const { sessionAffinity, sessionAffinityTimeout: seconds } = object.spec;
    if (sessionAffinity === 'None') return undefined;
    const place = source.place(['spec', 'sessionAffinity']);
    if (skipped === 'headless') return { details: { problem: 'headless', service: name }, place };
    if (!port || !programs(settings.mode, 'virtualServers')) return undefined;
    const scheduler = port.scheduler || settings.ipvs.scheduler;
    return hashing.has(scheduler)
      ? { details: { problem: 'scheduler', service: name, scheduler, seconds }, place }
      : undefined;
  },
);
