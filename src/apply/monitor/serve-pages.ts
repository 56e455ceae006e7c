import type { Server } from 'node:http';
import type { Family } from '../../kernel/family.ts';
import { describeError } from '../../base/system-errors.ts';
import { closeServer, listen } from '../change/serve-health-checks.ts';

/** A page that a program asks for. */
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Where to listen. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** What a path answers, such as "/metrics". */
export type Pages = Readonly<Record<string, () => Answer>>;

/** A port that answers with pages. */
export class PageServer {
  readonly #address: ListenAddress;
  readonly #pages: Pages;
  #server: Server | undefined;

  constructor(address: ListenAddress, pages: Pages) {
    this.#address = address;
    this.#pages = pages;
  }

  /** Opens the port unless it is open. Gives why it cannot. */
  async open(): Promise<string | undefined> {
    const { host, port } = this.#address;
    try {
      this.#server ??= await listen(host, port, (response, request) => {
        const page = this.#pages[request.url?.replace(/\?.*/s, '') ?? ''];
        const { status, type, body } = page?.() ?? { status: 404, type: 'text/plain', body: 'not found\n' };
        response.writeHead(status, { 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' });
        response.end(body);
      });
      return undefined;
    } catch (error) {
      return `cannot listen on ${host} port ${port}: ${describeError(error)}`;
    }
  }

  async close(): Promise<void> {
    if (this.#server) await closeServer(this.#server);
  }
}

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
