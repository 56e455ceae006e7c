import { wordsOf } from '../../src/say/words/words.ts';
import { makeBundle } from '../../src/bundle/make-bundle.ts';
import { count } from '../../src/base/printable.ts';
import { groupBy } from '../../src/cluster/grouping.ts';
import { portAddresses, serviceName, type ShownPort } from '../../src/cluster/model.ts';
import { addressWords } from '../../src/say/port-facts.ts';
import { describeService } from '../../src/ask/describe/describe-services.ts';
import { describeServiceInWords } from '../../src/say/describe/service.ts';
import { serviceRows, tableOfRows } from '../../src/say/describe/table.ts';
import { diagnose, type Finding } from '../../src/base/findings/finding.ts';
import { joinHostPort } from '../../src/kernel/address.ts';
import { modeFacts } from '../../src/kube-proxy/modes.ts';
import { mainFile, printNames, summarizeSide } from '../../src/say/bundle-text.ts';
import { formatText } from '../../src/say/formats/text.ts';
import { describeDumpInWords, describeFoundPorts, describeLeftovers } from '../../src/say/describe/dump.ts';
import { answerTrace, formatMatrix } from '../../src/say/trace-answer.ts';
import { drawWays } from '../../src/say/draw-way.ts';
import { traceMatrix } from '../../src/ask/trace/matrix.ts';
import { senderKinds } from '../../src/ask/trace/question.ts';
import type { Scene } from '../../src/ask/trace/scene.ts';
import { describeTrace } from '../../src/say/way/trace.ts';
import { describeWay } from '../../src/say/way/step.ts';
import { compare } from './compare.ts';
import {
  allServices,
  type Answer,
  type Input,
  type NamedWay,
  type Output,
  type PacketQuestion,
  type Question,
} from './questions.ts';
import { holdsObjects, readInput, type Loaded, type Shown } from './read-input.ts';
import { inPageWords } from './words.ts';

/** Lines of a list to show. */
const limit = 200;

/**
 * Returns a function that answers questions. It throws only for a bug, because wrong input is part of the answer. It keeps the last two
 * inputs, because most questions are about these.
 */
export function startCompiler(): (question: Question) => Answer {
  const kept = new Map<string, Loaded>();
  const readOnce = (input: Input): Loaded => {
    // Ignore the second text for manifests, because only a dump needs names.
    const asked = holdsObjects(input.text) ? { ...input, beside: '' } : input;
    const key = JSON.stringify(asked);
    const found = kept.get(key) ?? readInput(asked);
    kept.delete(key);
    kept.set(key, found);
    for (const old of [...kept.keys()].slice(0, -2)) kept.delete(old);
    return found;
  };
  return (question) => answer(question, readOnce);
}

function answer(question: Question, readOnce: (input: Input) => Loaded): Answer {
  switch (question.kind) {
    case 'read': {
      const { shown, ...read } = readOnce(question.input);
      return { kind: 'read', result: { ...read, output: shown && outputOf(shown) } };
    }
    case 'service': {
      const { shown } = readOnce(question.input);
      return shown ? answerService(question, shown) : nothing;
    }
    case 'trace': {
      const { shown } = readOnce(question.input);
      return shown ? answerPacket(question.packet, shown, question.width) : nothing;
    }
    case 'compare':
      return compare(question.from, question.to, readOnce);
  }
}

/** The answer without output. The problems are shown beside the text. */
const nothing: Answer = { kind: 'wrong', text: '' };

function outputOf(shown: Shown): Output {
  const { kind, scene } = shown;
  const asked = {
    senders: [...senderKinds, ...scene.side.pods.keys()].slice(0, limit),
    targets: [...new Set(scene.side.ports.flatMap((port) => targetsOf(port, scene)))].slice(0, limit),
  };
  if (kind === 'dump') return { ...summarizeDump(shown), ...asked };
  const { files, manifest } = makeBundle(shown.snapshot);
  return {
    node: shown.snapshot.node.name,
    summary: summarizeSide(shown.snapshot),
    files: [...files],
    mainFile: printNames.get(mainFile(manifest)) ?? 'manifest.json',
    services: shown.snapshot.cluster.services.map((each) => `${each.namespace}/${each.name}`),
    ...asked,
  };
}

function summarizeDump({ read }: Shown & { readonly kind: 'dump' }) {
  const { dump, flows } = read;
  const { log, shown } = dump;
  const { mode, ports, leftovers } = shown;
  const found = [
    ...(ports.length > 0 || !(log || flows) ? [count(ports.length, 'Service port')] : []),
    ...(describeLeftovers(leftovers).length > 0 ? ['leftovers of another mode'] : []),
    ...(flows ? ['a list of connections'] : []),
    ...(log ? ["kube-proxy's log"] : []),
  ];
  const services = [...new Set([...ports, ...leftovers.ports].map(({ label }) => label))];
  const summary = `What a node printed${mode ? `, in ${modeFacts[mode].title}` : ''}: ${found.join(', ')}`;
  return { node: '', summary, files: [], mainFile: '', services };
}

function targetsOf(port: ShownPort, { links }: Scene): readonly string[] {
  const { port: number, nodePort, family } = port;
  const own = links.flatMap(({ name, addresses }) => (name === 'lo' ? [] : addresses));
  const node = own.find((each) => each.family === family)?.address;
  const addresses =
    number === undefined ? [] : portAddresses(port).map(({ address }) => [address.text, number] as const);
  return [
    ...(port.service === undefined ? [] : [`svc/${serviceName(port)}${number === undefined ? '' : `:${number}`}`]),
    ...addresses.map(([address, at]) => joinHostPort(address, at)),
    ...(port.service === undefined && nodePort && node ? [joinHostPort(node.text, nodePort)] : []),
  ];
}

function answerService({ service: name, columns }: Question & { readonly kind: 'service' }, shown: Shown): Answer {
  const { scene } = shown;
  if (name === allServices) return { kind: 'service', text: tableOf(shown, columns), matrix: '', ways: [] };
  const text = formatText(shown.kind === 'dump' ? describePorts(name, shown) : describeOne(name, shown), true);
  const ports = scene.side.ports.filter((port) => (shown.kind === 'dump' ? port.label : serviceName(port)) === name);
  if (ports.length === 0) return { kind: 'service', text, matrix: '', ways: [] };
  const matrix = traceMatrix(ports, scene);
  return {
    kind: 'service',
    text,
    matrix: formatMatrix(matrix, scene, { isColoured: true }),
    ways: waysOf(matrix, scene),
  };
}

/** Limit on the paths to draw. */
const mostWays = 24;

/** Returns one way per address: from a pod to a cluster IP, and from outside to any other address. */
function waysOf({ cells }: ReturnType<typeof traceMatrix>, scene: Scene): readonly NamedWay[] {
  const rows = groupBy(
    cells,
    ({ target: { address, port, protocol } }) => `${joinHostPort(address.text, port)}/${protocol}`,
  );
  return [...rows.values()].slice(0, mostWays).flatMap((row) => {
    const [{ kind }] = row;
    const asked = kind === 'cluster-ip' ? ['pod', 'remote-pod', 'node'] : ['external', 'node'];
    const found = asked.map((sender) => row.find(({ from }) => from === sender)).find((cell) => cell !== undefined);
    // Leave out this path, because it does not pass the Service.
    if (!found || found.fate.verdict === 'local') return [];
    return [{ kind: addressWords[kind], way: describeWay(found, describeTrace(found, scene), scene) }];
  });
}

function tableOf(shown: Shown, width: number): string {
  const style = { rows: Infinity, width };
  if (shown.kind === 'manifests') return formatText([tableOfRows(serviceRows(shown.snapshot), style)]);
  const { read } = shown;
  const { nothing: none } = read;
  const lists = read.dump.flows ? 'flows' : 'nothing';
  const said = none && wordsOf(diagnose('not-found', { problem: 'no-service', why: none.why, lists }));
  const why = said ? [`${[said.text, ...(said.help === undefined ? [] : [said.help])].join('\n')}\n`] : [];
  const text = formatText(describeDumpInWords(read, limit, style), true);
  return [...why, ...(text === '' ? [] : [text])].join('\n');
}

function describePorts(name: string, { read }: Shown & { readonly kind: 'dump' }) {
  const ports = [...read.dump.shown.ports, ...read.dump.shown.leftovers.ports].filter(({ label }) => label === name);
  return describeFoundPorts(ports, [], read, limit);
}

function describeOne(name: string, shown: Shown & { readonly kind: 'manifests' }) {
  const view = shown.snapshot;
  const { cluster, node } = view;
  const service = cluster.services.find((each) => `${each.namespace}/${each.name}` === name);
  if (!service) return [];
  const description = describeService(service, undefined, view, 'cluster.local');
  const words = { node: node.name === '' ? 'a node without a name' : node.name, limit, hasRules: true };
  return [describeServiceInWords(description, [], words)];
}

function answerPacket(
  { from, to, protocol, inInterface }: PacketQuestion,
  { kind, scene }: Shown,
  width: number,
): Answer {
  const asked = { from: from.trim(), to: to.trim() };
  if (asked.from === '' || asked.to === '') return { kind: 'wrong', text: 'name who sends the packet, and where to' };
  const named = inInterface.trim();
  const question = {
    ...asked,
    proto: protocol === '' ? undefined : protocol,
    inInterface: named === '' ? undefined : named,
  };
  const found = answerTrace(question, scene, (words) => inPageWords(words, kind));
  if (!('json' in found)) return { kind: 'wrong', text: sentences(found, kind) };
  return { kind: 'trace', text: found.text(true, undefined), svg: drawWays(found.ways, width) };
}

function sentences(diagnostics: readonly Finding[], kind: Shown['kind']): string {
  return diagnostics
    .map((each) => wordsOf(each, (words) => inPageWords(words, kind)))
    .flatMap(({ text, help }) => (help === undefined ? [text] : [text, help]))
    .join('\n');
}
