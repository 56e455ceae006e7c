import { isName } from '../../base/names.ts';
import {
  describeSnapshot,
  followedRelease,
  formatDescribed,
  refuseIdleStyle,
  usualDomain,
} from '../../library/describe.ts';
import { withoutDefaultMode } from '../../library/open.ts';
import { nodeFlag, refuseIdleOfDescription } from '../../library/command-flags.ts';
import { flagRow, openFlags } from '../../library/options.ts';
import { refuse } from '../../library/refusal.ts';
import { modeSourceOf } from '../../library/words.ts';
import { type Cluster as AskedCluster, findOther, isInRevision } from '../../library/node/open.ts';
import { isFileName, isPath } from '../shared/path-words.ts';
import { isKubectlPlugin } from '../shared/run-commands.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand, type Call } from './call.ts';
import { limitFlag, outputFlag } from './flags.ts';
import { messageFlags } from './messages.ts';
import { clusterFlags, nameInputs, openInput, type ClusterOptions, type InputFlags } from './open-input.ts';

interface DescribeOptions extends InputFlags, ClusterOptions {
  readonly fromDump?: string;
  readonly fromNode?: string;
  readonly debugImage?: string;
  readonly clusterDomain: string;
  readonly output: 'text' | 'json';
  readonly limit: number;
  readonly rules?: boolean;
}

export const addDescribeCommand = defineCommand<DescribeOptions>({
  name: 'describe',
  summary: 'Show a Service and everything that comes from it, or which Service an address, chain or set belongs to.',
  description:
    'Show a Service and everything that comes from it: the endpoints that a node uses and why, virtual servers, set ' +
    'entries, chains and rules, DNS names. Without <what>, print a table of all Services. Exit status 1 if nothing ' +
    'is found.',
  arguments: [
    [
      '[what]',
      'a Service (name, namespace/name, either with :port), an address, address:port, a node port, an endpoint, a ' +
        'chain, a set or an entry of one, a DNS name, or a line of iptables-save in quotes',
    ],
    ['[input...]', 'what to look at, as with -f: manifests, a bundle, or a dump of a node'],
  ],
  flags: [
    ...openFlags('looks'),
    ...clusterFlags,
    nodeFlag('the node to describe (default: hostnameOverride, or else the only Node in the input)'),
    flagRow('text', '--from-dump <path>', 'a dump of a node; -f adds manifests that name its Services', {
      path: 'read',
    }),
    flagRow(
      'text',
      '--from-node <name>',
      'with --cluster: dump this node with kubectl debug, in a pod that is removed afterwards',
      { isOfCall: true, group: 'input' },
    ),
    flagRow('text', '--debug-image <image>', 'the image of that pod (default: busybox)', {
      isOfCall: true,
      group: 'input',
      idle: [{ without: '--from-node' }],
    }),
    flagRow('text', '--cluster-domain <domain>', "the cluster's domain in DNS", {
      usual: usualDomain,
      group: 'output',
    }),
    outputFlag(['text', 'json']),
    flagRow('on', '--rules', 'also show the rules, sets and virtual servers, and the environment of containers'),
    limitFlag,
    ...messageFlags,
  ],
  run: async (asked) => {
    const { what, paths } = await sortArguments(asked);
    const { fromDump } = asked.options;
    const named = [...(fromDump === undefined ? [] : [fromDump]), ...paths];
    const { call } = await nameInputs(asked, named, nodeDumper(asked) ?? 'traffic');
    const { options, terminal } = call;
    if (what !== undefined && options.file.length === 0) refuse({ problem: 'no-manifests', what });
    const opened = await openInput(call);
    const reading = opened.at('');
    const isUnread = reading.diagnostics.some(({ code }) => code === 'unreadable-file');
    if (fromDump !== undefined && !isUnread && opened.kind !== 'dump' && opened.kind !== 'unreadable')
      refuseDump(fromDump);
    refuseIdleOfDescription(call.given, opened, { what, node: options.node });
    refuseIdleStyle(options, opened.kind, what);
    const { loaded } = opened;
    // The note on the mode is dropped, because the output names the mode.
    await call.report(withoutDefaultMode(reading));
    const side = reading.side ?? call.end();
    const release = followedRelease(side);
    if (release !== undefined && !reading.diagnostics.some(({ code }) => code === 'kubernetes-version'))
      await call.note({ problem: 'follows-release', release });
    // A word with a slash may name a Service or a path. If the inputs are from kpc.yaml, nothing shows which.
    const mayBePath = what?.includes('/') === true && named.length === 0 && !call.isGiven('file');
    const style = { width: terminal.width, isColoured: terminal.colour.out, mayBePath };
    const modeFrom = loaded && modeSourceOf(loaded);
    const description = describeSnapshot(side, what, { ...options, ...style, modeFrom });
    await call.print(description.findings, new Map());
    const { isFound, text, result } = description;
    if (!isFound && text === '' && result === undefined) return call.fail(exitStatus.negative, [side]);
    await call.out(formatDescribed(side, description, call.said));
    return isFound ? exitStatus.ok : exitStatus.negative;
  },
});

function refuseDump(path: string): never {
  return refuse({ problem: 'no-dump', path });
}

function nodeDumper(call: Call<DescribeOptions>) {
  const { cluster, fromNode, debugImage } = call.options;
  if (fromNode === undefined) return undefined;
  if (!cluster && !isKubectlPlugin('kpc')) refuse({ problem: 'flag-alone', flag: '--from-node', without: '--cluster' });
  if (!isName(fromNode, 'subdomain')) refuse({ problem: 'no-node-name', name: fromNode });
  return (asked: AskedCluster) => asked.dumpNode(fromNode, debugImage ?? 'busybox');
}

async function sortArguments(call: Call<DescribeOptions>) {
  const { words: args } = call;
  const { fromDump, node } = call.options;
  // If a flag names an input, a word may be the subject, even if there is a folder with the same name.
  const isNamed = call.isGiven('file') || fromDump !== undefined;
  const holdsDump = async (word: string) =>
    fromDump === undefined && isPath(word) && (await findOther([word], node))?.kind === 'dump';
  const inputs = new Set<string>();
  for (const word of args) if ((isNamed && (await holdsDump(word))) || (await isInRevision(word))) inputs.add(word);
  const isInput = (word: string) => inputs.has(word) || (isNamed ? isFileName(word) : isPath(word));
  const asked = args.filter((word) => !isInput(word));
  // kubectl's form, "describe svc nginx", is accepted. The single word "services" is not, because it is a chain in nftables mode.
  const isOfKind =
    (asked.length === 2 ? /^(?:svc|services?)$/i : /^(?:svc|service)$/i).test(asked[0] ?? '') && asked.length <= 2;
  const what = isOfKind ? asked[1] : asked[0];
  const others = isOfKind ? asked.slice(2) : asked.slice(1);
  if (!others.every((word) => isInput(word) || isPath(word))) refuse({ problem: 'several-subjects', words: asked });
  const paths = [...args.filter(isInput), ...others];
  const [first = '', ...rest] = paths;
  const mayBeSubject = what === undefined && rest.length > 0 && !isFileName(first) && !first.endsWith('/');
  const folder = mayBeSubject ? first : isNamed ? what : undefined;
  if (folder === undefined || !isPath(folder)) return { what, paths };
  // A folder often has the name of a Service. The word is therefore the subject if the other inputs have a Service with that name.
  const beside = mayBeSubject ? rest : paths;
  const isSubject = !(await findOther([folder], node)) && (await isFoundBeside(call, folder, beside));
  if (!isSubject) return { what: undefined, paths: [folder, ...beside] };
  if (!isNamed) await call.note({ problem: 'taken-as-subject', word: folder });
  return { what: folder, paths: beside };
}

/** Reports whether the inputs have a Service with this name, or something that comes from one. */
async function isFoundBeside(call: Call<DescribeOptions>, word: string, paths: readonly string[]): Promise<boolean> {
  const { options, terminal } = call;
  const named = [...(options.fromDump === undefined ? [] : [options.fromDump]), ...paths];
  const { side } = (await openInput(call.with({ file: call.inputs(named, options.file) }))).at('');
  return (
    side !== undefined &&
    describeSnapshot(side, word, { ...options, width: terminal.width, isColoured: false, modeFrom: undefined }).isFound
  );
}
