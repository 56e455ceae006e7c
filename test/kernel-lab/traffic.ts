import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type Transport = 'tcp' | 'udp' | 'sctp';

/** One attempt to reach a server, from a namespace ("-" is the node itself), perhaps with a given source address. */
export interface Probe {
  readonly from: string;
  readonly protocol: Transport;
  readonly address: string;
  readonly port: number;
  readonly source?: string | undefined;
}

/** The same probe several times. */
export function repeat(probe: Probe, times: number): readonly Probe[] {
  return Array.from({ length: times }, () => probe);
}

/** Servers and clients in network namespaces. traffic.pl runs them, with one line for each request. */
export interface Traffic {
  /** Starts a server that answers with its name and the client's address. */
  listen(namespace: string, protocol: Transport, address: string, port: number, name: string): Promise<void>;
  forget(namespace: string, protocol: Transport, port: number): void;
  /** Runs all probes at once. The answers are like "NAME CLIENT-ADDRESS", "refused", "timeout" or "unreachable". */
  probe(probes: readonly Probe[]): Promise<readonly string[]>;
  /** Opens a connection that keeps sending. Returns the server's name, or the error. */
  transfer(id: string, from: string, address: string, port: number, protocol?: 'tcp' | 'udp'): Promise<string>;
  /** "open BYTES" or "broken BYTES REASON". */
  status(id: string): Promise<string>;
  stop(id: string): Promise<string>;
  close(): void;
}

export function startTraffic(script = fileURLToPath(new URL('traffic.pl', import.meta.url))): Traffic {
  const child = spawn('perl', [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<string, (answer: string) => void>();
  let counter = 0;
  child.on('close', (status, signal) => {
    if (waiting.size > 0) throw new Error(`traffic.pl ended with ${signal ?? status}, and answers nothing any more`);
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const blank = line.indexOf(' ');
    const id = line.slice(0, blank);
    const resolve = waiting.get(id);
    waiting.delete(id);
    if (resolve) resolve(line.slice(blank + 1));
    else console.error(`traffic.pl: ${line}`);
  });

  const ask = (id: string, words: readonly (string | number)[]): Promise<string> => {
    const answer = new Promise<string>((resolve) => waiting.set(id, resolve));
    child.stdin.write(`${words.join(' ')}\n`);
    return answer;
  };

  return {
    async listen(namespace, protocol, address, port, name) {
      await ask('listening', ['listen', namespace, protocol, address, port, name]);
    },
    forget(namespace, protocol, port) {
      child.stdin.write(`forget ${namespace} ${protocol} ${port}\n`);
    },
    probe(probes) {
      return Promise.all(
        probes.map((probe) => {
          const id = `p${counter++}`;
          const { from, protocol, address, port, source } = probe;
          return ask(id, ['probe', id, from, protocol, address, port, ...(source === undefined ? [] : [source])]);
        }),
      );
    },
    async transfer(id, from, address, port, protocol = 'tcp') {
      const answer = await ask(id, ['transfer', id, from, protocol, address, port]);
      return answer.startsWith('open ') ? answer.slice('open '.length) : answer;
    },
    status: (id) => ask(id, ['status', id]),
    stop: (id) => ask(id, ['stop', id]),
    close: () => child.stdin.end(),
  };
}
