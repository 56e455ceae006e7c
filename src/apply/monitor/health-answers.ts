import type { Family } from '../../kernel/family.ts';
import type { Answer } from './serve-pages.ts';

/** What is known of a watch when a probe asks for its health. Times in milliseconds since 1970. */
export interface Health {
  readonly now: number;
  /** Undefined if no round has succeeded yet. */
  readonly lastSuccess: number | undefined;
  /** Of the bundle; none before the first. */
  readonly families: readonly Family[];
}

const familyNames = { ipv4: 'IPv4', ipv6: 'IPv6' } as const satisfies Record<Family, string>;

/**
 * The answer to /healthz, as kube-proxy gives it (pkg/proxy/healthcheck/proxy_health.go): 200 or 503, and JSON with the same fields.
 * It reports each node as eligible: a bundle does not hold that a node is being deleted.
 */
export function answerHealthz(health: Health, isHealthy: boolean): Answer {
  return answer(health, isHealthy, { nodeEligible: true });
}

/** The answer to /livez. */
export function answerLivez(health: Health, isLive: boolean): Answer {
  return answer(health, isLive, {});
}

/** What Go writes for no time at all. */
const never = '0001-01-01T00:00:00Z';

function answer({ now, lastSuccess, families }: Health, healthy: boolean, more: object): Answer {
  const currentTime = new Date(now);
  const last = lastSuccess === undefined ? never : new Date(lastSuccess);
  const status = Object.fromEntries(
    families.map((family) => [familyNames[family], { lastUpdated: last, healthy }] as const),
  );
  // A kube-proxy that is healthy says so of this moment, even if it had nothing to update.
  const body = { lastUpdated: healthy ? currentTime : last, currentTime, ...more, healthy, status };
  return { status: healthy ? 200 : 503, type: 'application/json', body: JSON.stringify(body) };
}
