import { z } from 'zod';
import { codes, examples, failures } from '#codes';
import { failureCodes } from '../../src/base/failure-codes.ts';
import { findNearest } from '../../src/base/find-nearest.ts';
import { findingCodes, severitiesOf } from '../../src/base/findings/codes.ts';
import { about, amount, anyObject, mapOf, objectOf, optional, text, type Schema } from '../../src/base/json/schema.ts';
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
import { openOptions } from '../../src/library/options.ts';
import { diagnosticsOf, inOptions } from '../../src/library/words.ts';
import type { Answer } from '../../src/say/formats/json.ts';
import { formatFindings } from '../../src/say/formats/text.ts';
import { describe as described } from '../../src/say/outputs/describe.ts';
import { equivalence as compared } from '../../src/say/outputs/equivalence.ts';
import { linted } from '../../src/say/outputs/lint.ts';
import { traced } from '../../src/say/outputs/trace.ts';
import { snapshotsJson } from '../../src/say/snapshots.ts';
import { RefusedPath, type TextsBelow } from './texts-below.ts';

/** A question of an agent: its words for the agent, its arguments, and the answer as data. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Readonly<Record<string, z.ZodType>>;
  /** Whether it takes the other options of kpc, too. */
  readonly compiles: boolean;
  readonly result: Schema;
  /** What it has to say, and the result; without one, why there is none. */
  readonly answer: (input: Readonly<Record<string, unknown>>, files: TextsBelow) => ToolAnswer;
}

export type ToolAnswer = Omit<Answer<unknown>, 'command'>;

/** Gives a tool the types of its arguments. */
function tool<const Input extends Readonly<Record<string, z.ZodType>>>(
  made: Omit<Tool, 'input' | 'answer' | 'compiles'> & {
    readonly input: Input;
    readonly answer: (input: z.infer<z.ZodObject<Input>>, files: TextsBelow) => ToolAnswer;
  },
): Tool {
  return { ...made, compiles: 'proxyMode' in made.input || 'dump' in made.input } as unknown as Tool;
}

const sources = z.array(z.union([z.string(), z.object({ name: z.string(), text: z.string() })])).min(1);
const manifestEndings = ['.yaml', '.yml', '.json'] as const;

const modes = z.enum(['iptables', 'ipvs', 'nftables']);
const manifests = sources.describe(
  'Services, EndpointSlices, Nodes and so on: paths of files or folders below the folder of the server, or { name, text }; without it, those that kpc.yaml names',
);
/** Those that agents need most; all of the library are taken, under its names, as advice has them. */
const compiled = {
  proxyMode: modes
    .optional()
    .describe("kube-proxy's mode; without it that of kpc.yaml or of a configuration among the manifests, or else ipvs"),
  kubernetesVersion: z
    .enum([...releases, 'auto'])
    .optional()
    .describe('the release whose kube-proxy is meant'),
  node: z.string().optional().describe('the name of the node; needed if the manifests hold several Nodes'),
  namespace: z.string().optional().describe('the namespace of objects and names that name none'),
  assume: z.boolean().optional().describe('whether to assume what manifests from git lack: addresses, Pods, Nodes'),
};
const dump = sources.describe(
  "what a node's own tools print (iptables-save, nft list ruleset, ipset save, ipvsadm -Sn, ip addr, conntrack -L): paths or { name, text }",
);

type Sources = z.infer<typeof sources>;

function readAll(
  given: Sources,
  files: TextsBelow,
  endings: readonly string[],
  exclude: readonly string[] = [],
): readonly NamedText[] {
  return given.flatMap((each) => (typeof each === 'string' ? files.read(each, endings, exclude) : [each]));
}

interface Compiled {
  readonly manifests?: Sources | undefined;
  readonly dump?: Sources | undefined;
  readonly proxyMode?: z.infer<typeof modes> | undefined;
  readonly kubernetesVersion?: ManifestsOfNodes['kubernetesVersion'];
  readonly node?: string | undefined;
  readonly namespace?: string | undefined;
  readonly assume?: boolean | undefined;
  /** Paths. */
  readonly config?: string;
  readonly hostAddresses?: string;
  /** Patterns of files in folders. */
  readonly exclude?: string | readonly string[];
}

/** The options of texts, and the paths of two. */
const optionNames = [...openOptions, 'node', 'ignore', 'exclude'];

function optionsOf({ manifests: given = [], dump: _, ...options }: Compiled, files: TextsBelow) {
  if (given.length === 0) throw new RefusedPath('name manifests, or write file: into kpc.yaml');
  for (const name of Object.keys(options)) {
    if (optionNames.includes(name)) continue;
    const near = findNearest(name, optionNames);
    throw new RefusedPath(`there is no parameter ${name}${near === undefined ? '' : `: did you mean ${near}?`}`);
  }
  const textOf = (path: string | undefined): readonly NamedText[] => (path === undefined ? [] : files.read(path, ['']));
  const { config, hostAddresses, exclude, ...others } = options;
  const [ofConfig] = textOf(config);
  const [ofHost] = textOf(hostAddresses);
  return {
    ...others,
    manifests: readAll(given, files, manifestEndings, [exclude ?? []].flat()),
    ...(ofConfig ? { config: ofConfig } : {}),
    ...(ofHost ? { hostAddresses: ofHost } : {}),
  };
}

/** A dump of one node. */
function dumpOf({ dump: given = [], manifests: _, namespace: __, ...options }: Compiled, files: TextsBelow) {
  const [stray] = Object.keys(options);
  if (stray) throw new RefusedPath(`${stray} is only for manifests: a dump is of one node, in one mode`);
  const { kind, snapshots, diagnostics } = open(readAll(given, files, ['']), { name: 'dump' });
  const [side] = snapshots;
  if (side && kind === 'dump') return { side, diagnostics };
  const why = formatFindings(diagnostics, () => '', false);
  throw new RefusedPath(`no output of a tool of a node is here\n${why}`);
}

function refuseBoth(input: Compiled): void {
  if ((input.manifests === undefined) === (input.dump === undefined))
    throw new RefusedPath('name manifests or a dump, not both');
}

const question = {
  from: z
    .string()
    .optional()
    .describe('who sends: an address, a Pod by its name, or pod, remote-pod, node or external'),
  to: z
    .string()
    .optional()
    .describe('where to: svc/NAME[:PORT] (or svc/NAMESPACE/NAME), address:port, a DNS name, ingress/NAME'),
  proto: z.enum(['tcp', 'udp', 'sctp', 'icmp']).optional(),
  all: z.string().optional().describe('in place of from and to: a Service, asked from every kind of sender'),
  steps: z.boolean().optional().describe('also the rules on the way, one after the other'),
};

const compiledFiles = objectOf({
  files: optional(about('file name to size', mapOf(amount))),
  counts: optional(mapOf(amount)),
  file: optional(text),
  content: optional(text),
});

/** All questions that an agent may ask. Each only reads. */
export const tools: readonly Tool[] = [
  tool({
    name: 'trace',
    title: 'Trace a packet through a node',
    description:
      'Ask this first when something cannot reach a Service. Says whether the first packet of a connection is delivered, refused or dropped, why, and to which endpoints, on a node compiled from manifests or shown by a dump; with steps, by which rules. The verdict is "unknown" if the input does not show enough; each reason then says what would settle it.',
    input: { manifests: manifests.optional(), dump: dump.optional(), ...compiled, ...question },
    result: traced,
    answer: ({ from, to, proto, all, steps = false, ...input }, files) => {
      if (all === undefined && (from === undefined || to === undefined))
        throw new RefusedPath('name from and to, or all');
      refuseBoth(input);
      const { namespace } = input;
      const found = input.dump ? { side: dumpOf(input, files).side, namespace } : optionsOf(input, files);
      const { trace: answer, snapshots, diagnostics } = trace({ ...found, from, to, proto, all });
      const result = answer && {
        ...answer,
        traces: answer.traces.map(({ steps: own, ...each }) => (steps ? { ...each, steps: own } : each)),
      };
      return { snapshots, findings: diagnostics, result };
    },
  }),
  tool({
    name: 'describe',
    title: 'List Services, or describe one with its endpoints',
    description:
      'Ask this to see which Services there are, with addresses, ports, node ports and numbers of endpoints; or with what, one of them with each endpoint: of manifests, or read back from the rules in a dump of a node.',
    input: {
      manifests: manifests.optional(),
      dump: dump.optional(),
      ...compiled,
      what: z
        .string()
        .optional()
        .describe('a Service (NAME or NAMESPACE/NAME), an address, address:port, a node port, an endpoint or a chain'),
    },
    result: described,
    answer: ({ what, ...input }, files) => {
      refuseBoth(input);
      const { namespace } = input;
      const { side, diagnostics } = input.dump ? dumpOf(input, files) : manifestsOf(input, files);
      if (!side) return { snapshots: [], findings: diagnostics };
      const { result, findings: said } = describeAsData(side, what, namespace);
      return { snapshots: snapshotsJson([side]), findings: [...diagnostics, ...diagnosticsOf(said)], result };
    },
  }),
  tool({
    name: 'compile',
    title: 'Compile Services to rules',
    description:
      'Ask this for the rules themselves: what kube-proxy would program on a node for these manifests. Without file, lists the files with their sizes; with it, returns one.',
    input: {
      manifests: manifests.optional(),
      ...compiled,
      file: z.string().optional().describe('such as nftables.nft, iptables.restore or ipvsadm.restore'),
    },
    result: compiledFiles,
    answer: ({ file, ...input }, files) => {
      const { bundle, diagnostics: findings } = compile(optionsOf(input, files));
      if (!bundle) return { snapshots: [], findings };
      const sizes = Object.fromEntries([...bundle.files].map(([name, content]) => [name, content.length]));
      const content = file === undefined ? undefined : bundle.files.get(file);
      if (file !== undefined && content === undefined)
        throw new RefusedPath(`no file ${file}: there are ${Object.keys(sizes).join(', ')}`);
      const result = content === undefined ? { files: sizes, counts: bundle.manifest.counts } : { file, content };
      return { snapshots: snapshotsJson([bundle.side]), findings, result };
    },
  }),
  tool({
    name: 'equivalence',
    title: 'Compare what packets meet',
    description:
      'Ask this before a change of mode or release: traces a packet of every class through two sides, and says by cause which fare differently.',
    input: {
      manifests: manifests.optional(),
      ...compiled,
      from: z.string().describe('a mode or a release (such as 1.36)'),
      to: z.string().describe('likewise'),
      allNodes: z.boolean().optional(),
    },
    result: compared,
    answer: ({ from, to, allNodes, ...input }, files) =>
      comparison(
        equivalence({ ...optionsOf(input, files), allNodes, from: from as ComparedSide, to: to as ComparedSide }),
      ),
  }),
  tool({
    name: 'migrate',
    title: 'Plan a change of mode or an upgrade',
    description:
      'Ask this when a cluster is to move to another kube-proxy mode or release: what to set before, and what breaks, on all Nodes of the manifests.',
    input: {
      manifests: manifests.optional(),
      ...compiled,
      from: modes.optional(),
      to: modes.optional(),
      toKubernetesVersion: z.string().optional(),
    },
    result: compared,
    answer: ({ from, to, toKubernetesVersion, ...input }, files) =>
      comparison(migrate({ ...optionsOf(input, files), from, to, toKubernetesVersion })),
  }),
  tool({
    name: 'lint',
    title: 'Check manifests',
    description:
      'Ask this to review manifests: errors and warnings, and Services that are valid and do not do what they seem to say, each with the trace of a packet that shows it.',
    input: { manifests: manifests.optional(), ...compiled },
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
    input: { code: z.string() },
    result: anyObject,
    answer: ({ code }) => ({ snapshots: [], findings: [], result: explain(code.replace(/^\[(.*)\]$/, '$1')) }),
  }),
];

/** One node of manifests, or why there is none. */
function manifestsOf(input: Compiled, files: TextsBelow) {
  const { manifests: texts, ...options } = optionsOf(input, files);
  // As kpc describe does.
  const { snapshots, diagnostics } = open(texts, { ...options, assume: options.assume ?? true });
  return { side: snapshots[0], diagnostics };
}

function comparison({ report: result, snapshots, findings, diagnostics }: EquivalenceResult): ToolAnswer {
  return { snapshots, findings: [...diagnostics, ...findings], result };
}

function explain(name: string) {
  const code = findingCodes.find((each) => each === name);
  const failure = failureCodes.find((each) => each === name);
  if (code === undefined && failure === undefined) {
    const near = findNearest(name, [...findingCodes, ...failureCodes]);
    throw new RefusedPath(`no message has the code ${name}${near === undefined ? '' : `: did you mean ${near}?`}`);
  }
  const ofKpc = code && {
    severities: severitiesOf(code),
    meaning: codes[code].meaning,
    advice: codes[code].advice === undefined ? undefined : inOptions(codes[code].advice),
    example: examples[code],
  };
  return { code: name, kpc: ofKpc, 'kpc-apply': failure && failures[failure] };
}
