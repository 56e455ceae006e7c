import { z } from 'zod';
import { codes, examples, failures } from '#codes';
import { failureCodes } from '../../src/base/findings/apply.ts';
import { findNearest } from '../../src/base/names.ts';
import { findingCodes, severitiesOf } from '../../src/base/findings/codes.ts';
import { anyObject, type Schema } from '../../src/base/json/schema.ts';
import { proxyModes, type ProxyMode } from '../../src/kube-proxy/modes.ts';
import { describeAsData } from '../../src/library/describe.ts';
import {
  compile,
  equivalence,
  lint,
  migrate,
  open,
  releases,
  trace,
  type ComparedSide,
  type EquivalenceResult,
  type ManifestsOfNodes,
  type NamedText,
} from '../../src/library/index.ts';
import { isError } from '../../src/base/findings/finding.ts';
import { byName } from '../../src/library/inputs.ts';
import { openedTexts, openTexts } from '../../src/library/open.ts';
import { Refusal, refuse, refuseFlag } from '../../src/library/refusal.ts';
import { migrateFlags, nodeFlag, traceFlags } from '../../src/library/command-flags.ts';
import { changeFlags, flagRow, openFlags, upgradeFlag, type Flag } from '../../src/library/options.ts';
import { packetProtocols, readsNoNames } from '../../src/library/trace.ts';
import { inOptions } from '../../src/library/words.ts';
import type { CommandAnswer } from '../../src/say/formats/json.ts';
import { compiled, equivalence as compared } from '../../src/say/outputs/compile-and-compare.ts';
import { describe as described } from '../../src/say/outputs/describe.ts';
import { linted } from '../../src/say/outputs/lint.ts';
import { traced } from '../../src/say/outputs/trace.ts';
import { sayFinding, sayFindings } from '../../src/say/words/said.ts';
import { snapshotsJson } from '../../src/say/snapshots.ts';
import { recogniseTexts } from '../../src/snapshot/open/recognise-texts.ts';
import { refuseUse } from './refusals.ts';
import type { TextsBelow } from './texts-below.ts';

/** A question for agents: its description, its arguments, and the answer as data. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Readonly<Record<string, z.ZodType>>;
  /** The flags of the command that is asked: more parameters, which have an effect in the same cases. */
  readonly flags: readonly Flag[];
  readonly result: Schema;
  /** The findings and the result; without a result, why there is none. */
  readonly answer: (input: Readonly<Record<string, unknown>>, files: TextsBelow) => ToolAnswer;
}

export type ToolAnswer = Omit<CommandAnswer<unknown>, 'command'>;

/** Types a tool by its arguments. */
function tool<const Input extends Readonly<Record<string, z.ZodType>>>(
  made: Omit<Tool, 'input' | 'answer'> & {
    readonly input: Input;
    readonly answer: (input: z.infer<z.ZodObject<Input>>, files: TextsBelow) => ToolAnswer;
  },
): Tool {
  return made as unknown as Tool;
}

const sources = z.array(z.union([z.string(), z.object({ name: z.string(), text: z.string() })])).min(1);

const manifests = sources
  .optional()
  .describe(
    'Services, EndpointSlices, Nodes and so on: paths of files or folders below the folder of the server, or { name, text }; without it, those that kpc.yaml names',
  );

/** A command line flag as a parameter. */
function parameter<Value extends string = string>({ choices, help }: Flag): z.ZodOptional<z.ZodType<Value>> {
  const type = choices ? z.enum(choices) : z.string();
  return type.optional().describe(inOptions(help)) as unknown as z.ZodOptional<z.ZodType<Value>>;
}

const theNode = 'the node (default: hostnameOverride, or else the only Node of the manifests)';
const eachNode = 'look at this node only (default: all Nodes of the manifests)';

/** The options that agents need most; all of the library's are accepted under its names. `node` explains the node. */
const compiledFor = (node: string) => ({
  proxyMode: z
    .enum(proxyModes)
    .optional()
    .describe("kube-proxy's mode; without it that of kpc.yaml or of a configuration among the manifests, or else ipvs"),
  kubernetesVersion: z
    .enum([...releases, 'auto'])
    .optional()
    .describe('the release whose kube-proxy is meant'),
  node: z.string().optional().describe(node),
  namespace: z.string().optional().describe('the namespace of objects and names that name none'),
  assume: z.boolean().optional().describe('whether to assume what manifests from git lack: addresses, Pods, Nodes'),
});
const allNodes = z.boolean().optional().describe('on each Node of the manifests');
const dump = sources
  .optional()
  .describe(
    "what a node's own tools print (iptables-save, nft list ruleset, ipset save, ipvsadm -Sn, ip addr, conntrack -L): paths or { name, text }",
  );

type Sources = z.infer<typeof sources>;

function readAll(given: Sources, read: (path: string) => readonly NamedText[]): readonly NamedText[] {
  return given.flatMap((each) => (typeof each === 'string' ? read(each) : [each]));
}

interface Compiled {
  readonly manifests?: Sources | undefined;
  readonly dump?: Sources | undefined;
  readonly proxyMode?: ProxyMode | undefined;
  readonly kubernetesVersion?: ManifestsOfNodes['kubernetesVersion'];
  readonly node?: string | undefined;
  readonly namespace?: string | undefined;
  readonly assume?: boolean | undefined;
  readonly config?: string;
  readonly hostAddresses?: string;
  /** Patterns of files in folders. */
  readonly exclude?: string | readonly string[];
}

/** The parameter that is a flag: `file` is what compile prints. */
export function parameterOf({ key }: Flag): string {
  return key === 'file' ? 'manifests' : key;
}

/** The names of all parameters of a tool; of those, what it takes beside a dump, which is of one node, in one mode. */
export function parametersOf({ input, flags }: Tool, isOfDump = false): ReadonlySet<string> {
  const names = [...Object.keys(input), ...flags.filter(({ isOfCall }) => !isOfCall).map(parameterOf)];
  if (!isOfDump) return new Set(names);
  return new Set(
    names.filter((name) => besideDump.has(name) || (Object.hasOwn(input, name) && !withoutDump.has(name))),
  );
}

const besideDump: ReadonlySet<string> = new Set(['namespace', 'hostAddresses']);
const withoutDump: ReadonlySet<string> = new Set(['manifests', 'allNodes', ...Object.keys(compiledFor(theNode))]);

/** Refuses what kpc has written, and what a node's tools print. `others`: the files of the folder that are not named like manifests, too. */
function expectManifests(
  path: string,
  texts: readonly NamedText[],
  others: () => readonly NamedText[],
): readonly NamedText[] {
  const listed = recogniseTexts(path, byName(texts));
  const isElse = listed.kind !== 'manifests' || texts.length === 0;
  const { kind, diagnostics } = isElse ? recogniseTexts(path, byName([...texts, ...others()])) : listed;
  const [fault] = diagnostics;
  if (kind === 'unreadable' && fault) throw new Refusal(sayFinding(fault));
  if (kind === 'dump') refuseUse(`${path} is a dump, not manifests`, 'name it as dump, which trace and describe take');
  if (kind === 'bundle')
    refuseUse(`${path} is a bundle, not manifests`, 'name the manifests that it was compiled from');
  return texts;
}

/** The options of texts, and the paths of two. */
function optionsOf({ manifests: given = [], dump: _, ...options }: Compiled, files: TextsBelow) {
  if (given.length === 0) refuseUse('no manifests are named', 'name manifests, or write file: into kpc.yaml');
  const textOf = (path: string | undefined): readonly NamedText[] => (path === undefined ? [] : files.read(path));
  const { config, hostAddresses, exclude, ...others } = options;
  const [ofConfig] = textOf(config);
  const [ofHost] = textOf(hostAddresses);
  return {
    ...others,
    manifests: given.flatMap((each) => {
      if (typeof each !== 'string') return expectManifests(each.name, [each], () => []);
      const texts = files.readManifests(each, [exclude ?? []].flat());
      return expectManifests(each, texts, () => files.read(each));
    }),
    ...(ofConfig ? { config: ofConfig } : {}),
    ...(ofHost ? { hostAddresses: ofHost } : {}),
  };
}

/** A dump of one node; no side without one. */
function dumpOf(
  { dump: given = [], hostAddresses, manifests: _, namespace: __, ...options }: Compiled,
  files: TextsBelow,
) {
  const [stray] = Object.keys(options);
  if (stray !== undefined)
    refuseUse(`${stray} is only for manifests`, 'leave it out: a dump is of one node, in one mode');
  const [ofHost] = hostAddresses === undefined ? [] : files.read(hostAddresses);
  const { kind, snapshots, diagnostics } = open(
    readAll(given, (path) => files.read(path)),
    { name: 'dump', hostAddresses: ofHost },
  );
  if (kind === 'dump') return { side: snapshots[0], diagnostics };
  const path = given.map((each) => (typeof each === 'string' ? each : each.name)).join(', ');
  return refuse({ problem: 'no-dump', path });
}

function refuseBoth({ manifests: ofManifests, dump: ofDump }: Compiled): void {
  if (ofManifests && ofDump) refuseUse('manifests and a dump are named', 'leave out one of the two');
  if (!ofManifests && !ofDump) refuseUse('no input is named', 'name manifests or a dump, or write file: into kpc.yaml');
}

const nodes = [nodeFlag(theNode), flagRow('on', '--all-nodes', 'on each Node of the manifests')];

const question = {
  from: z
    .string()
    .optional()
    .describe('who sends: an address, a Pod by its name, or pod, remote-pod, node or external'),
  to: z
    .string()
    .optional()
    .describe('where to: svc/NAME[:PORT] (or svc/NAMESPACE/NAME), address:port, a DNS name, ingress/NAME'),
  proto: z.enum(packetProtocols).optional().describe('the protocol; icmp is a ping'),
  inInterface: z.string().optional().describe("the node's interface where the packet arrives"),
  all: z.string().optional().describe('in place of from and to: a Service, asked from every kind of sender'),
  steps: z.boolean().optional().describe('also the rules on the way, one after the other'),
};

const nothingRead = { side: undefined, diagnostics: [] } as const;

export const tools: readonly Tool[] = [
  tool({
    name: 'trace',
    title: 'Trace a packet through a node',
    description:
      'Ask this first when something cannot reach a Service. Says whether the first packet of a connection is delivered, refused or dropped, why, and to which endpoints, on a node compiled from manifests or shown by a dump; with steps, by which rules. The verdict is "unknown" if the input does not show enough; each reason then says what would settle it.',
    input: {
      manifests,
      dump,
      ...compiledFor(`${theNode}; of several, name one or set allNodes`),
      allNodes,
      ...question,
    },
    flags: [...traceFlags, ...openFlags('looks'), ...nodes],
    result: traced,
    answer: ({ from, to, proto, inInterface, all, steps = false, ...input }, files) => {
      if (all === undefined && (from === undefined || to === undefined)) refuseUse('name from and to, or all');
      refuseBoth(input);
      const { side, diagnostics: read } = input.dump ? dumpOf(input, files) : nothingRead;
      if (side && input.namespace !== undefined && readsNoNames({ from, to, all }, { side }))
        refuseFlag('--namespace', 'no-names');
      if (read.some(isError)) return { snapshots: [], findings: read };
      const found = side ? { side, namespace: input.namespace } : optionsOf(input, files);
      const { trace: answer, snapshots, diagnostics } = trace({ ...found, from, to, proto, inInterface, all });
      const result = answer && {
        ...answer,
        traces: answer.traces.map(({ steps: own, ...each }) => (steps ? { ...each, steps: own } : each)),
      };
      return { snapshots, findings: [...read, ...diagnostics], result };
    },
  }),
  tool({
    name: 'describe',
    title: 'List Services, or describe one with its endpoints',
    description:
      'Ask this to see which Services there are, with addresses, ports, node ports and numbers of endpoints; or with what, one of them with each endpoint: of manifests, or read back from the rules in a dump of a node.',
    input: {
      manifests,
      dump,
      ...compiledFor(theNode),
      what: z
        .string()
        .optional()
        .describe('a Service (NAME or NAMESPACE/NAME), an address, address:port, a node port, an endpoint or a chain'),
    },
    flags: [...openFlags('looks'), nodeFlag(theNode)],
    result: described,
    answer: ({ what, ...input }, files) => {
      refuseBoth(input);
      const { namespace } = input;
      const { side, diagnostics } = input.dump ? dumpOf(input, files) : manifestsOf(input, files);
      if (!side) return { snapshots: [], findings: diagnostics };
      const { result, findings: said } = describeAsData(side, what, namespace);
      return { snapshots: snapshotsJson([side]), findings: [...diagnostics, ...sayFindings(said)], result };
    },
  }),
  tool({
    name: 'compile',
    title: 'Compile Services to rules',
    description:
      'Ask this for the rules themselves: what kube-proxy would program on a node for these manifests. The manifest names the files and counts what is in them; with file, one of them comes with it.',
    input: {
      manifests,
      ...compiledFor(theNode),
      file: z.string().optional().describe('such as nftables.nft, iptables.restore or ipvsadm.restore'),
    },
    flags: [...openFlags('programs'), nodeFlag(theNode)],
    result: compiled,
    answer: ({ file, ...input }, files) => {
      const { bundle, diagnostics: findings } = compile(optionsOf(input, files));
      if (!bundle) return { snapshots: [], findings };
      const { manifest } = bundle;
      const snapshots = snapshotsJson([bundle.side]);
      if (file === undefined) return { snapshots, findings, result: { manifest } };
      const content = bundle.files.get(file);
      if (content !== undefined) return { snapshots, findings, result: { manifest, files: { [file]: content } } };
      return refuseUse(`there is no file ${file}`, `name ${[...bundle.files.keys()].join(', ')}`);
    },
  }),
  tool({
    name: 'equivalence',
    title: 'Compare what packets meet',
    description:
      'Ask this before a change of mode or release: traces a packet of every class through two sides, and says by cause which fare differently.',
    input: {
      manifests,
      ...compiledFor(theNode),
      from: z.string().describe('a mode or a release (such as 1.36)'),
      to: z.string().describe('likewise'),
      allNodes,
    },
    flags: [...openFlags('looks'), ...nodes],
    result: compared,
    answer: ({ from, to, ...input }, files) =>
      comparison(equivalence({ ...optionsOf(input, files), from: from as ComparedSide, to: to as ComparedSide })),
  }),
  tool({
    name: 'migrate',
    title: 'Plan a change of mode or an upgrade',
    description:
      'Ask this when a cluster is to move to another kube-proxy mode or release: what to set before, and what breaks, on all Nodes of the manifests.',
    input: {
      manifests,
      ...compiledFor(eachNode),
      from: parameter<ProxyMode>(changeFlags.from),
      to: parameter<ProxyMode>(changeFlags.to),
      toKubernetesVersion: parameter(upgradeFlag),
    },
    flags: [...migrateFlags, nodeFlag(eachNode)],
    result: compared,
    answer: ({ from, to, toKubernetesVersion, ...input }, files) =>
      comparison(migrate({ ...optionsOf(input, files), from, to, toKubernetesVersion })),
  }),
  tool({
    name: 'lint',
    title: 'Check manifests',
    description:
      'Ask this to review manifests: errors and warnings, and Services that are valid and do not do what they seem to say, each with the trace of a packet that shows it.',
    input: {
      manifests,
      ...compiledFor(eachNode),
      ignore: z.array(z.enum(findingCodes)).optional().describe('codes whose findings are not reported'),
    },
    flags: [
      ...openFlags('looks'),
      nodeFlag(eachNode),
      flagRow('codes', '--ignore <code>', 'accept findings of this code'),
    ],
    result: linted,
    answer: (input, files) => {
      const { findings, report: result, snapshots, diagnostics } = lint(optionsOf(input, files));
      return { snapshots, findings: [...diagnostics, ...findings], result };
    },
  }),
  tool({
    name: 'explain',
    title: 'Explain a code',
    description: 'Ask this about the code of a message, such as bad-value: what it means and what to do.',
    input: {
      code: z.string().optional().describe('the code, such as bad-value; without it, all codes with what they mean'),
    },
    flags: [],
    result: anyObject,
    answer: ({ code }) => ({ snapshots: [], findings: [], result: explain(code?.replace(/^\[(.*)\]$/, '$1')) }),
  }),
];

/** One node of the manifests, or why there is none. */
function manifestsOf(input: Compiled, files: TextsBelow) {
  const { snapshots, diagnostics } = openedTexts('manifests', openTexts(optionsOf(input, files), false));
  return { side: snapshots[0], diagnostics };
}

function comparison({ report: result, snapshots, findings, diagnostics }: EquivalenceResult): ToolAnswer {
  return { snapshots, findings: [...diagnostics, ...findings], result };
}

function explain(name: string | undefined) {
  if (name === undefined) return { kpc: meaningsOf(codes), 'kpc-apply': meaningsOf(failures) };
  const code = findingCodes.find((each) => each === name);
  const failure = failureCodes.find((each) => each === name);
  if (code === undefined && failure === undefined)
    refuse({ problem: 'unknown-code', name, meant: findNearest(name, [...findingCodes, ...failureCodes]) });
  const ofKpc = code && {
    severities: severitiesOf(code),
    meaning: codes[code].meaning,
    advice: codes[code].advice,
    example: examples[code],
  };
  return { code: name, kpc: ofKpc, 'kpc-apply': failure && failures[failure] };
}

function meaningsOf(rows: Readonly<Record<string, { readonly meaning: string }>>) {
  return Object.fromEntries(Object.entries(rows).map(([code, { meaning }]) => [code, meaning]));
}
