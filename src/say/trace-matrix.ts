import { fitRows, joinCells } from '../base/printable.ts';
import { groupBy } from '../cluster/grouping.ts';
import type { DescriptionLine } from '../ask/describe/describe-words.ts';
import { joinHostPort, type Address } from '../kernel/address.ts';
import { formatSocketAddress } from '../kernel/ports-and-marks.ts';
import { isArrival, isUnknownOwn, type Fate, type KnownFate } from '../packet/packet.ts';
import { traceJson } from '../ask/trace/trace-words.ts';
import { addressWords } from '../ask/diff/port-facts.ts';
import type { Matrix } from '../ask/trace/matrix.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { painter } from './formats/description.ts';

/** A table of a Service's addresses and senders, cut to the width of a terminal if there is one. */
export function formatMatrix(
  { senders, cells, healthChecks, policies, doubts }: Matrix,
  node: string,
  { isColoured, width = Infinity }: { readonly isColoured: boolean; readonly width?: number | undefined },
): string {
  const paint = painter(isColoured);
  const rows = groupBy(
    cells,
    ({ kind, target: { address, port, protocol } }) => `${kind} ${joinHostPort(ownText(address), port)}/${protocol}`,
  );
  const fates = [...rows.values()].map((own) =>
    senders.map((_, at) => inShort(own.find(({ column }) => column === at)?.fate)),
  );
  const table = [
    [node === '' ? 'to' : `on ${node}, to`, ...senders],
    ...[...rows.keys()].map((address, at) => [address, ...(fates[at] ?? []).map(({ text }) => text)]),
  ];
  const [head = [], ...lines] = fitRows(table, { width, weights: { 0: 2 }, names: 0 });
  const painted = lines.map((row, at) =>
    row.map((cell, i) => (i === 0 ? cell : paint(fates[at]?.[i - 1]?.role ?? 'plain', cell))),
  );
  const told = legendOf([...senders, ...fates.flat().map(({ text }) => text)]).map((text) => paint('dim', text));
  return `${[paint('heading', joinCells(head)), ...painted.map(joinCells), ...healthChecks, ...policies, ...doubts, ...told].join('\n')}\n`;
}

/** What the words in the table mean, of those that it has. */
function legendOf(shown: readonly string[]): readonly string[] {
  const rows = [
    [/^itself$/, 'itself: an endpoint of the Service'],
    [/^\d+ /, 'number: endpoints reached'],
    [/ kept/, 'kept: they see the client'],
    [/ masq/, 'masq: they see the node'],
    [/ mixed/, 'mixed: some see the client, some the node'],
    [/^local/, 'local: reaches the node itself'],
    [/^forwarded/, 'forwarded: leaves the node unchanged'],
    [/fails?\??$/, 'fails: it arrives, and its answer does not come back'],
    [/\?$/, '?: if what is not shown lets it pass unchanged'],
    [/^-$/, '-: such packets do not come here'],
  ] as const;
  return rows.flatMap(([pattern, words]) => (shown.some((text) => pattern.test(text)) ? [`  ${words}`] : []));
}

/** "node" for an unknown address of the node. */
function ownText(address: Address): string {
  return isUnknownOwn(address) ? 'node' : address.text;
}

const roles: { readonly [V in Fate['verdict']]: DescriptionLine['role'] } = {
  delivered: 'good',
  refused: 'bad',
  dropped: 'bad',
  unknown: 'bad',
  local: 'plain',
  forwarded: 'plain',
};

/** Where packets end, and whether endpoints see the client. */
function inShort(fate: Fate | undefined): Pick<DescriptionLine, 'role' | 'text'> {
  if (!fate) return { role: 'dim', text: '-' };
  if (fate.verdict === 'unknown' && fate.otherwise)
    return { role: 'bad', text: `${knownInShort(fate.otherwise).text}?` };
  return knownInShort(fate);
}

/** How many of the ways by which the first packet arrives lead to a connection that fails. */
function failingOf({ connection }: KnownFate): 'all' | 'some' | 'none' {
  const { kind, ways } = connection();
  const arriving = ways.filter(({ way }) => isArrival(way.verdict));
  if (kind === 'fails' && arriving.length > 0) return 'all';
  return arriving.some(({ outcome }) => outcome.kind === 'fails') ? 'some' : 'none';
}

function knownInShort(fate: KnownFate): Pick<DescriptionLine, 'role' | 'text'> {
  const failing = failingOf(fate);
  if (failing === 'all') return { role: 'bad', text: 'fails' };
  const role = failing === 'some' ? 'bad' : roles[fate.verdict];
  if (fate.verdict !== 'delivered') return { role, text: fate.verdict };
  const count = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const isMasqueraded = new Set(fate.endpoints.map(({ source }) => source === 'masqueraded'));
  return {
    role,
    text: `${count} ${isMasqueraded.size > 1 ? 'mixed' : isMasqueraded.has(true) ? 'masq' : 'kept'}${failing === 'some' ? ', some fail' : ''}`,
  };
}

/** The cells as traces without their steps. Load balancers ask the health check before they send to an address. */
export function matrixJson({ cells, healthChecks }: Matrix, scene: Scene) {
  return cells.map((cell) => {
    const { kind, from: column } = cell;
    const { steps: _, notes = [], ...answer } = traceJson(cell, scene);
    const told = kind === addressWords['cluster-ip'] ? notes : [...notes, ...healthChecks];
    return { ...answer, from: { ...answer.from, column }, notes: told.length === 0 ? undefined : told };
  });
}
