import type { Server } from 'node:http';
import { describeError } from '../../bundle/errors.ts';
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

export interface PageServer {
  /** Opens the port unless it is open. Gives why it cannot. */
  open(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** More connections than this at once are cut: no probe and no Prometheus has as many. */
const mostConnections = 100;

export function createPageServer({ host, port }: ListenAddress, pages: Pages): PageServer {
  let server: Server | undefined;
  return {
    async open() {
      if (server) return undefined;
      try {
        server = await listen(host, port, (response, request) => {
          const page = pages[request.url?.replace(/\?.*/s, '') ?? ''];
          const { status, type, body } = page?.() ?? { status: 404, type: 'text/plain', body: 'not found\n' };
          response.writeHead(status, { 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' });
          response.end(body);
        });
        server.maxConnections = mostConnections;
        return undefined;
      } catch (error) {
        return `cannot listen on ${host} port ${port}: ${describeError(error)}`;
      }
    },
    async close() {
      if (server) await closeServer(server);
    },
  };
}
