import { joinHostPort } from '../../kernel/address.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import type { Step } from '../../packet/step.ts';
import type { Trace } from '../../ask/trace/question.ts';
import type { Scene } from '../../ask/trace/scene.ts';
import { stepInWords } from './step.ts';
import type { TraceInWords } from './trace.ts';

/** The way of packets from one kind of sender to one address, to be drawn. */
export interface WayInWords {
  /** The question, node and mode. */
  readonly heading: string;
  /** The values that kpc chose because the input lacks them, as lines. */
  readonly assumed: readonly string[];
  readonly from: string;
  /** "10.96.0.10:80/tcp". */
  readonly to: string;
  readonly verdict: string;
  readonly isGood: boolean;
  /** Whether the end of the packets is known. */
  readonly isKnown: boolean;
  /** The chains, sets and virtual servers on the way, in order. */
  readonly stations: readonly DrawnStation[];
  readonly endpoints: readonly WayEndpoint[];
}

interface DrawnStation {
  readonly name: string;
  readonly detail: string;
}

interface WayEndpoint {
  readonly name: string;
  /** Share of new connections, from 0 to 1. */
  readonly share: number;
  readonly note: string;
}

/** `rests`: further assumptions that the way depends on, as clauses. */
export function describeWay(
  trace: Trace,
  { heading, assumed, verdict, isGood }: TraceInWords,
  scene: Scene,
  rests: readonly string[] = [],
): WayInWords {
  const { sender, target, fate } = trace;
  const { steps, endpoints: ends } = fate.otherwise ?? fate;
  const endpoints = ends.map(({ address, port, probability, source }) => ({
    name: joinHostPort(address.text, port),
    share: probability,
    note: source === 'masqueraded' ? 'sees the node' : 'sees the client',
  }));
  return {
    heading,
    assumed: [...rests.map((clause) => `assumed: ${clause}`), ...assumed.map(({ text }) => text)],
    from: sender.words,
    to: `${joinHostPort(target.address.text, target.port)}/${target.protocol}`,
    verdict,
    isGood,
    isKnown: fate.verdict !== 'unknown',
    stations: stationsOnWay(steps, endpoints, trace, scene),
    endpoints,
  };
}

/** The places of the steps that change something, without repeats in a row. */
function stationsOnWay(
  steps: readonly Step[],
  endpoints: WayInWords['endpoints'],
  trace: Trace,
  scene: Scene,
): readonly DrawnStation[] {
  const stations: (DrawnStation & { readonly next: string | undefined })[] = [];
  for (const step of steps) {
    const name = placeOf(step);
    if (name === undefined) continue;
    // The chain's last step says more than its first.
    if (stations.at(-1)?.name === name) stations.pop();
    const { hook, what } = stepInWords(step, trace, scene);
    const next = step.kind === 'rule' && 'chain' in step.action ? step.action.chain : undefined;
    // The trace follows one of several endpoints; its chain stands for all of theirs.
    const isOfOne = endpoints.length > 1 && step.kind === 'rule' && step.action.kind === 'dnat';
    const does = isOfOne ? `${what}; each endpoint has its own` : what;
    // The next station is the jump's target.
    const detail = [...(hook === undefined ? [] : [hook]), ...(next === undefined ? [does] : [])].join(': ');
    stations.push({ name, detail, next });
  }
  return stations.filter(({ next }, i) => next === undefined || stations[i + 1]?.name.endsWith(next) === true);
}

/** The chain, virtual server or proxy port of a step; undefined for a step that leads nowhere else. */
function placeOf(step: Step): string | undefined {
  switch (step.kind) {
    case 'rule':
      return step.action.kind === 'return' ? undefined : chainOfStep(step);
    case 'policy':
      return chainOfStep(step);
    case 'virtual-server':
      return `virtual server ${formatSocketAddress(step.server)}`;
    case 'listener':
      return `proxy port ${formatSocketAddress(step.server)}`;
    case 'route':
    case 'carrier':
      return undefined;
  }
}

function chainOfStep({ tool, table, chain }: Step & { readonly kind: 'rule' | 'policy' }): string {
  return tool === 'nftables' && table === 'kube-proxy' ? chain : `${table} ${chain}`;
}
