import { z } from 'zod';
import { codes, examples, failures } from '#codes';
import { failureCodes } from '../../src/base/findings/apply.ts';
import { findNearest } from '../../src/base/names.ts';
import { findingCodes, severitiesOf } from '../../src/base/findings/codes.ts';
import { anyObject, type Schema } from '../../src/base/json/schema.ts';
import { proxyModes, type ProxyMode } from '../../src/kube-proxy/modes.ts';
import { parseRelease, releases } from '../../src/kube-proxy/releases.ts';
import { describeAsData } from '../../src/library/describe.ts';
import {
  compile,
  equivalence,
  lint,
  migrate,
  type ComparedSide,
  type EquivalenceResult,
} from '../../src/library/index.ts';
import { openedTexts, scenesIn } from '../../src/library/open.ts';
import { refuse, refuseFlag } from '../../src/library/refusal.ts';
import {
  changeFlags,
  migrateFlags,
  nodeFlag,
  refuseIdleOfDescription,
  refuseIdleOfPacket,
  strictFlag,
  traceFlags,
  upgradeFlag,
} from '../../src/library/command-flags.ts';
import { flagRow, openFlags, type Flag } from '../../src/library/options.ts';
import { packetProtocols, readsNoNames, traceIn } from '../../src/library/trace.ts';
import { inOptions } from '../../src/library/words.ts';
import { compiled, equivalence as compared, linted } from '../../src/say/outputs/compile-and-compare.ts';
import { describe as described } from '../../src/say/outputs/describe.ts';
import { traced } from '../../src/say/outputs/trace.ts';
import { sayFindings } from '../../src/say/words/said.ts';
import { snapshotsJson } from '../../src/say/snapshots.ts';
import { partParameters, type MayBeLong, type ToolAnswer } from './long-answers.ts';
import { refuseUse } from './refusals.ts';
import { openInput, readManifests } from './sources.ts';
import type { TextsBelow } from './texts-below.ts';

/** A question for agents: its description, its parameters, and the answer as data. */
export interface Tool extends MayBeLong {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Readonly<Record<string, z.ZodType>>;
  /** The flags of the command. They are further parameters, and have an effect in the same cases. */
  readonly flags: readonly Flag[];
  readonly result: Schema;
  /** Returns the findings and the result. Without a result, the findings say why. */
  readonly answer: (input: Readonly<Record<string, unknown>>, ...others: Others) => ToolAnswer | Promise<ToolAnswer>;
}

type Others = readonly [files: TextsBelow, given: readonly Flag[]];

function tool<const Input extends Readonly<Record<string, z.ZodType>>>(
  made: Omit<Tool, 'input' | 'answer'> & {
    readonly input: Input;
    readonly answer: (input: z.infer<z.ZodObject<Input>>, ...others: Others) => ToolAnswer | Promise<ToolAnswer>;
  },
): Tool {
  const parts = made.flags.length > 0 ? partParameters : {};
  return { ...made, input: { ...made.input, ...parts } } as unknown as Tool;
}

const noSource = 'neither a path nor { name, text } with two strings';
const source = z.union([z.string().min(1, noSource), z.object({ name: z.string(), text: z.string() })], noSource);
const sources = z.array(source).min(1);

const manifests = sources
  .optional()
  .describe(
    'Services, EndpointSlices, Nodes and so on: paths of files or folders below the folder of the server, or { name, text }; without it, those that kpc.yaml names. Beside a dump, they name its Services. trace and describe also take a bundle or golden',
  );

function parameter<Value extends string = string>({ choices, help }: Flag): z.ZodOptional<z.ZodType<Value>> {
  const type = choices ? z.enum(choices) : z.string();
  return type.optional().describe(inOptions(help)) as unknown as z.ZodOptional<z.ZodType<Value>>;
}

const theNode = 'the node (default: hostnameOverride, or else the only Node of the manifests)';
const eachNode = 'look at this node only (default: all Nodes of the manifests)';

/**
 * The options that agents need most. All other options of the library are accepted too. `node`: the description of the option of this name.
 */
const compiledFor = (node: string) => ({
  proxyMode: z
    .enum(proxyModes)
    .optional()
    .describe("kube-proxy's mode; without it that of kpc.yaml or of a configuration among the manifests, or else ipvs"),
  kubernetesVersion: z
    .preprocess((value) => parseRelease(String(value)) ?? value, z.enum([...releases, 'auto']))
    .optional()
    .describe('the release whose kube-proxy is meant'),
  node: z.string().optional().describe(node),
  namespace: z.string().optional().describe('the namespace of objects and names that name none'),
  assume: z.boolean().optional().describe('whether to assume what manifests from git lack: addresses, Pods, Nodes'),
  config: source.optional().describe("kube-proxy's configuration: a path or { name, text }"),
  hostAddresses: source.optional().describe('what ip -j addr prints on the node: a path or { name, text }'),
});
const allNodes = z.boolean().optional().describe('on each Node of the manifests');
const dump = sources
  .optional()
  .describe(
    "what a node's own tools print (iptables-save, nft list ruleset, ipset save, ipvsadm -Sn, ip addr, conntrack -L): paths or { name, text }",
  );

/** Names the parameter for a flag. `file` is already the name of what compile prints. */
export function parameterOf({ key }: Flag): string {
  return key === 'file' ? 'manifests' : key;
}

/** Returns the names of a tool's parameters. `isOfDump`: only those that apply to a dump, which has one node and one mode. */
export function parametersOf({ input, flags }: Tool, isOfDump = false): ReadonlySet<string> {
  const names = [...Object.keys(input), ...flags.filter(({ isOfCall }) => !isOfCall).map(parameterOf)];
  if (!isOfDump) return new Set(names);
  return new Set(
    names.filter((name) => besideDump.has(name) || (Object.hasOwn(input, name) && !withoutDump.has(name))),
  );
}

const besideDump: ReadonlySet<string> = new Set(['namespace', 'hostAddresses']);
const withoutDump: ReadonlySet<string> = new Set(['allNodes', ...Object.keys(compiledFor(theNode))]);

const nodes = [nodeFlag(theNode), flagRow('on', '--all-nodes', 'on each Node of the manifests')];

const question = {
  from: z
    .string()
    .optional()
    .describe('who sends: an address, a Pod by its name, or pod, remote-pod, node or external'),
  to: z
    .string()
    .optional()
    .describe('where to: svc/NAME[:PORT] (or svc/NAMESPACE/NAME), address:port, node:PORT, a DNS name, ingress/NAME'),
  proto: z.enum(packetProtocols).optional().describe('the protocol; icmp is a ping'),
  inInterface: z.string().optional().describe("the node's interface where the packet arrives"),
  all: z.string().optional().describe('in place of from and to: a Service, asked from every kind of sender'),
  steps: z.boolean().optional().describe('also the rules on the way, one after the other'),
};

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
    lists: ['traces', 'requests'],
    narrower: 'name one packet with from and to, name one node, or leave out steps',
    answer: async ({ from, to, proto, inInterface, all, steps = false, ...input }, files, given) => {
      if (all === undefined && (from === undefined || to === undefined)) refuseUse('name from and to, or all');
      const opened = await openInput(input, files);
      refuseIdleOfPacket(given, opened, input);
      const read = scenesIn(opened);
      const { namespace, node, allNodes: onAll } = input;
      const asked = { from, to, proto, inInterface, all, namespace, node, allNodes: onAll };
      const isNamed = given.some(({ key }) => key === 'namespace');
      if (isNamed && read.scenes?.every((scene) => readsNoNames(asked, scene))) refuseFlag('--namespace', 'no-names');
      const { trace: answer, snapshots, diagnostics } = traceIn(read, asked);
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
    lists: ['services', 'servicePorts', 'subjects'],
    narrower: 'name one Service with what',
    answer: async ({ what, ...input }, files, given) => {
      const { namespace, node } = input;
      const opened = await openInput(input, files);
      refuseIdleOfDescription(given, opened, { what, node });
      const {
        snapshots: [side],
        diagnostics,
      } = openedTexts(opened.kind, opened);
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
      file: z
        .string()
        .optional()
        .describe(
          'such as nftables.nft, iptables.restore or ipvsadm.restore; describe with what has the rules of one Service',
        ),
    },
    flags: [...openFlags('programs'), nodeFlag(theNode)],
    result: compiled,
    lists: [],
    narrower: 'ask describe with what: its kernel has the rules of one Service',
    answer: async ({ file, ...input }, files) => {
      const { path: name, options } = await readManifests(input, files);
      const { bundle, diagnostics: findings } = compile({ ...options, name });
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
    lists: ['causes'],
    narrower: 'name one node with node, or fewer manifests',
    answer: async ({ from, to, ...input }, files) =>
      comparison(
        equivalence({
          ...(await readManifests(input, files)).options,
          from: from as ComparedSide,
          to: to as ComparedSide,
        }),
      ),
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
      toConfig: source.optional().describe(inOptions(changeFlags.toConfig.help)),
    },
    flags: [...migrateFlags, nodeFlag(eachNode)],
    result: compared,
    lists: ['causes'],
    narrower: 'name one node with node, or fewer manifests',
    answer: async ({ from, to, toKubernetesVersion, ...input }, files) =>
      comparison(migrate({ ...(await readManifests(input, files)).options, from, to, toKubernetesVersion })),
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
      strictFlag,
    ],
    result: linted,
    lists: ['ignoredFindings'],
    narrower: 'name fewer manifests, or leave out codes with ignore',
    answer: async (input, files) => {
      const { findings, report: result, snapshots, diagnostics } = lint((await readManifests(input, files)).options);
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
    lists: [],
    narrower: 'name one code with code',
    answer: ({ code }) => ({ snapshots: [], findings: [], result: explain(code?.replace(/^\[(.*)\]$/, '$1')) }),
  }),
];

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
