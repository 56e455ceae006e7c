import { groupBy } from '../../src/cluster/group-by.ts';
import { joinHostPort } from '../../src/kernel/address.ts';
import type { traceMatrix } from '../../src/trace/matrix.ts';
import type { Scene } from '../../src/trace/scene.ts';
import { describeTrace, type TraceInWords } from '../../src/trace/trace-words.ts';
import type { Station, Way } from './questions.ts';

/** So many ways are drawn. */
const mostWays = 24;

/** One way for each address: from a pod to a cluster IP, and from outside to the others. */
export function waysOf({ cells }: ReturnType<typeof traceMatrix>, scene: Scene): readonly Way[] {
  const rows = groupBy(
    cells,
    ({ target: { address, port, protocol } }) => `${joinHostPort(address.text, port)}/${protocol}`,
  );
  return [...rows].slice(0, mostWays).flatMap(([to, row]) => {
    const [{ kind }] = row;
    const asked = kind === 'cluster IP' ? ['pod', 'remote-pod', 'node'] : ['external', 'node'];
    const found = asked.map((sender) => row.find(({ from }) => from === sender)).find((cell) => cell !== undefined);
    // Nothing of a Service is on such a way.
    if (!found || found.fate.verdict === 'local') return [];
    const { sender, fate } = found;
    const words = describeTrace(found, scene);
    const endpoints = fate.endpoints.map((endpoint) => ({
      name: joinHostPort(endpoint.address.text, endpoint.port),
      share: endpoint.probability,
      note: endpoint.source === 'masqueraded' ? 'sees the node' : 'sees the client',
    }));
    return [
      {
        from: sender.words,
        to: `${kind} ${to}`,
        verdict: words.verdict,
        isGood: words.isGood,
        isKnown: fate.verdict !== 'unknown',
        stations: stationsOf(words, endpoints),
        endpoints,
      },
    ];
  });
}

/** The chains and so on that the steps are in, each once in a row, without those that change nothing. */
function stationsOf({ steps }: TraceInWords, endpoints: Way['endpoints']): readonly Station[] {
  const [first, ...others] = endpoints;
  const stations: (Station & { readonly next: string | undefined })[] = [];
  for (const { hook, where, what } of steps) {
    if (hook === undefined || what === 'leaves this chain') continue;
    const name = where.replace(/ rule \d+$/, '').replace(/^(?:iptables|nftables kube-proxy|nftables) /, '');
    // What a chain does last says more than its first rule.
    if (stations.at(-1)?.name === name) stations.pop();
    const [, next, rest = ''] = /^goes on to (\S+)(.*)$/.exec(what) ?? [];
    const choice = others.length > 0 ? /, (one of \d+ .*)$/.exec(what)?.[1] : undefined;
    const isOfOne = first !== undefined && others.length > 0 && what === `goes to ${first.name}`;
    const detail = isOfOne
      ? `${what}; each endpoint has its own`
      : next === undefined
        ? (choice ?? what)
        : rest.replace(/^,? /, '');
    stations.push({ name, detail: detail === '' ? hook : `${hook}: ${detail}`, next });
  }
  return stations.filter(({ next }, i) => next === undefined || stations[i + 1]?.name.endsWith(next) === true);
}
