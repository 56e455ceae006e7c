import { z } from 'zod';
import { codes, examples, failures } from '#codes';
import { failureCodes } from '../../src/base/failure-codes.ts';
import { findingCodes, severitiesOf } from '../../src/base/findings/codes.ts';
import {
  compile,
  describeServices,
  equivalence,
  lint,
  migrate,
  open,
  releases,
  trace,
  type ComparedSide,
  type ManifestsOfNodes,
  type NamedText,
  type PacketInput,
} from '../../src/library/index.ts';
import { findNearest } from '../../src/base/find-nearest.ts';
import { RefusedPath, type TextsBelow } from './texts-below.ts';

/** A question of an agent: its words for the agent, its arguments, and the answer as data. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Readonly<Record<string, z.ZodType>>;
  readonly answer: (input: Readonly<Record<string, unknown>>, files: TextsBelow) => unknown;
}

/** Gives a tool the types of its arguments. */
function tool<const Input extends Readonly<Record<string, z.ZodType>>>(
  made: Omit<Tool, 'input' | 'answer'> & {
    readonly input: Input;
    readonly answer: (input: z.infer<z.ZodObject<Input>>, files: TextsBelow) => unknown;
  },
): Tool {
  return made as unknown as Tool;
}

const text = z.object({ name: z.string(), text: z.string() });
const sources = z.array(z.union([z.string(), text])).min(1);
const manifestEndings = ['.yaml', '.yml', '.json'] as const;

const modes = z.enum(['iptables', 'ipvs', 'nftables']);
const manifests = sources.describe(
  'Services, EndpointSlices, Nodes and so on: paths of files or folders below the folder of the server, or { name, text }',
);
const compiled = {
  mode: modes
    .optional()
    .describe("kube-proxy's mode; without it that of a configuration among the manifests, or else ipvs"),
  kubernetesVersion: z
    .enum([...releases, 'auto'])
    .optional()
    .describe('the release whose kube-proxy is meant'),
  node: z.string().optional().describe('the name of the node; needed if the manifests hold several Nodes'),
  namespace: z.string().optional().describe('the namespace of objects and names that name none'),
};
const dump = sources.describe(
  "what a node's own tools print (iptables-save, nft list ruleset, ipset save, ipvsadm -Sn, ip addr, conntrack -L): paths or { name, text }",
);

type Sources = z.infer<typeof sources>;

function readAll(given: Sources, files: TextsBelow, endings: readonly string[]): readonly NamedText[] {
  return given.flatMap((each) => (typeof each === 'string' ? files.read(each, endings) : [each]));
}

interface Compiled {
  readonly manifests?: Sources | undefined;
  readonly dump?: Sources | undefined;
  readonly mode?: z.infer<typeof modes> | undefined;
  readonly kubernetesVersion?: ManifestsOfNodes['kubernetesVersion'];
  readonly node?: string | undefined;
  readonly namespace?: string | undefined;
}

function optionsOf({ manifests: given = [], mode, kubernetesVersion, node, namespace }: Compiled, files: TextsBelow) {
  if (given.length === 0) throw new RefusedPath('name manifests');
  return { manifests: readAll(given, files, manifestEndings), proxyMode: mode, kubernetesVersion, node, namespace };
}

/** Manifests, or a dump. */
function inputOf(input: Compiled, files: TextsBelow): PacketInput {
  if ((input.manifests === undefined) === (input.dump === undefined))
    throw new RefusedPath('name manifests or a dump, not both');
  if (!input.dump) return optionsOf(input, files);
  const stray = (['mode', 'kubernetesVersion', 'node'] as const).find((name) => input[name] !== undefined);
  if (stray) throw new RefusedPath(`${stray} is only for manifests: a dump is of one node, in one mode`);
  const { kind, snapshots, diagnostics } = open(readAll(input.dump, files, ['']), { name: 'dump' });
  const [side] = snapshots;
  if (!side || kind !== 'dump')
    throw new RefusedPath(
      `no output of a tool of a node is here: ${diagnostics.map(({ text: said }) => said).join('; ')}`,
    );
  return { side };
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
};

/** All questions that an agent may ask. Each only reads. */
export const tools: readonly Tool[] = [
  tool({
    name: 'trace',
    title: 'Trace a packet through a node',
    description:
      'Ask this first when something cannot reach a Service. Says whether the first packet of a connection is delivered, refused or dropped, to which endpoints, and by which rules, on a node compiled from manifests or shown by a dump. The verdict is "unknown" if the input does not show enough; each reason then says what would settle it.',
    input: { manifests: manifests.optional(), dump: dump.optional(), ...compiled, ...question },
    answer: ({ from, to, proto, all, ...input }, files) => {
      if (all === undefined && (from === undefined || to === undefined))
        throw new RefusedPath('name from and to, or all');
      const { namespace } = input;
      const found = inputOf(input, files);
      return trace({ ...found, ...(namespace === undefined ? {} : { namespace }), from, to, proto, all });
    },
  }),
  tool({
    name: 'describe',
    title: 'List Services and their endpoints',
    description:
      'Ask this to see which Services there are, with addresses, ports, node ports and endpoints: of manifests, or read back from the rules in a dump of a node.',
    input: {
      manifests: manifests.optional(),
      dump: dump.optional(),
      ...compiled,
      service: z.string().optional().describe('only Services whose name contains this'),
    },
    answer: ({ service, ...input }, files) => {
      const found = inputOf(input, files);
      if ('side' in found) {
        const { ports, ...rest } = describeDump(found);
        return { ...rest, ports: ports.filter(({ name }) => service === undefined || name.includes(service)) };
      }
      const { bundle, diagnostics } = compile({ ...found, assume: true, allowEmpty: true });
      const all = bundle ? describeServices(bundle.side) : [];
      return { services: all.filter((each) => service === undefined || each.service.includes(service)), diagnostics };
    },
  }),
  tool({
    name: 'compile',
    title: 'Compile Services to rules',
    description:
      'Ask this for the rules themselves: what kube-proxy would program on a node for these manifests. Without file, lists the files with their sizes; with it, returns one.',
    input: {
      manifests,
      ...compiled,
      assume: z.boolean().optional().describe('assume what manifests from git lack: addresses, Pods, Nodes'),
      file: z.string().optional().describe('such as nftables.nft, iptables.restore or ipvsadm.restore'),
    },
    answer: ({ assume, file, ...input }, files) => {
      const { bundle, diagnostics } = compile({ ...optionsOf(input, files), assume });
      if (!bundle) return { diagnostics };
      const sizes = Object.fromEntries([...bundle.files].map(([name, content]) => [name, content.length]));
      if (file === undefined) return { files: sizes, counts: bundle.manifest.counts, diagnostics };
      const content = bundle.files.get(file);
      if (content === undefined) throw new RefusedPath(`no file ${file}: there are ${Object.keys(sizes).join(', ')}`);
      return { file, content, diagnostics };
    },
  }),
  tool({
    name: 'equivalence',
    title: 'Compare what packets meet',
    description:
      'Ask this before a change of mode, release or manifests: traces a packet of every class through two sides, and says by cause which fare differently.',
    input: {
      manifests: manifests.optional(),
      ...compiled,
      from: z.string().describe('a mode or a release (such as 1.36)'),
      to: z.string().describe('likewise'),
      allNodes: z.boolean().optional(),
    },
    answer: ({ from, to, allNodes, ...input }, files) =>
      equivalence({ ...optionsOf(input, files), allNodes, from: from as ComparedSide, to: to as ComparedSide }),
  }),
  tool({
    name: 'migrate',
    title: 'Plan a change of mode or an upgrade',
    description:
      'Ask this when a cluster is to move to another kube-proxy mode or release: what to set before, and what breaks, on all Nodes of the manifests.',
    input: {
      manifests,
      node: compiled.node,
      namespace: compiled.namespace,
      kubernetesVersion: compiled.kubernetesVersion,
      from: modes.optional(),
      to: modes.optional(),
      toKubernetesVersion: z.string().optional(),
    },
    answer: ({ from, to, toKubernetesVersion, ...input }, files) => {
      const { proxyMode: _, ...options } = optionsOf(input, files);
      return migrate({ ...options, from, to, toKubernetesVersion });
    },
  }),
  tool({
    name: 'lint',
    title: 'Check manifests',
    description:
      'Ask this to review manifests: errors and warnings, and Services that are valid and do not do what they seem to say, each with the trace of a packet that shows it.',
    input: { manifests, ...compiled },
    answer: (input, files) => lint(optionsOf(input, files)),
  }),
  tool({
    name: 'explain',
    title: 'Explain a code',
    description: 'Ask this about the code of a message, such as bad-value: what it means and what to do.',
    input: { code: z.string() },
    answer: ({ code }) => explain(code.replace(/^\[(.*)\]$/, '$1')),
  }),
];

function describeDump(found: {
  readonly side: PacketInput extends infer P ? (P extends { readonly side: infer S } ? S : never) : never;
}) {
  const described = describeServices(found.side);
  return 'ports' in described ? described : { mode: undefined, ports: [] };
}

function explain(name: string): unknown {
  const code = findingCodes.find((each) => each === name);
  const failure = failureCodes.find((each) => each === name);
  if (code === undefined && failure === undefined) {
    const near = findNearest(name, [...findingCodes, ...failureCodes]);
    throw new RefusedPath(`no message has the code ${name}${near === undefined ? '' : `: did you mean ${near}?`}`);
  }
  const ofKpc = code && {
    severities: severitiesOf(code),
    meaning: codes[code].meaning,
    advice: codes[code].advice,
    example: examples[code],
  };
  return { code: name, kpc: ofKpc, 'kpc-apply': failure && failures[failure] };
}
