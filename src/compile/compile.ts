import type { BundleContent } from '../bundle/make-bundle.ts';
import { isError, type Diagnostic, diagnose } from '../diagnostics/diagnostic.ts';
import { mergeDiagnostics } from '../input/sort-diagnostics.ts';
import {
  checkNodeName,
  checkNodes,
  oneNode,
  type CheckedNodes,
  describeLocalhostListeners,
  describeNodeGaps,
} from './chosen-nodes.ts';
import { chooseNodeName, compileNode } from './compile-node.ts';
import {
  loadTexts,
  settleVersion,
  type InputOptions,
  type InputTexts,
  type LoadedInputs,
  checkNamespace,
} from './load-texts.ts';
import { parseShard } from '../bundle/fleet/shard.ts';
import { parseAssignmentRanges, parsePodNetworks } from '../input/configuration/range-flags.ts';
import { resolveSettings } from '../input/configuration/resolve-settings.ts';
import { parseVersionChoice, startingRelease } from './kubernetes-version.ts';

/** What says for which node manifests are compiled, and how. */
export interface CompileOptions extends InputOptions {
  /** The node's name; without it, hostnameOverride or the only Node among the manifests names it. */
  readonly node?: string | undefined;
}

/** What a node's bundle holds, and all that there is to say of the input. */
export interface Compilation {
  /** Undefined if a diagnostic is an error: nothing is compiled then. */
  readonly content: BundleContent | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** Compiles texts for one node; nothing where `refusals` says that what is asked for is wrong. */
export function compile(texts: InputTexts, options: CompileOptions, refusals: readonly Diagnostic[] = []): Compilation {
  return compileLoaded(loadTexts(texts, options), options, refusals);
}

/** Compiles for one node what has been read and checked; `refusals` are said before what is wrong with the input. */
export function compileLoaded(
  read: LoadedInputs,
  { node, ipFamily }: Pick<CompileOptions, 'node' | 'ipFamily'>,
  refusals: readonly Diagnostic[] = [],
): Compilation {
  const nodeName = chooseNodeName(node, read.prepared);
  const { prepared, hostAddresses, modeNote, diagnostics: said } = settleVersion(read, nodeName);
  const found = checkNodesOf(read, oneNode(nodeName, node));
  const known = [...refusals, ...mergeDiagnostics(found, said)];
  if (hasErrors(known)) return { content: undefined, diagnostics: known };
  const gaps = describeNodeGaps(nodeName, prepared, hostAddresses);
  const content = compileNode(prepared, { nodeName, hostAddresses, ipFamily });
  const listeners = describeLocalhostListeners(content);
  return { content, diagnostics: [...gaps, ...listeners, ...(modeNote ? [modeNote] : []), ...known] };
}

/** What is wrong with compiling for these nodes. */
export function checkNodesOf({ prepared, diagnostics }: LoadedInputs, nodes: CheckedNodes): readonly Diagnostic[] {
  // An object that is wrong is not there.
  return hasErrors(diagnostics) ? [] : checkNodes(nodes, prepared);
}

/** Whether one of them is an error: nothing is compiled then. */
export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(isError);
}

/** The flags of a command, of which it may know some only. */
export interface GivenFlags extends Partial<InputOptions> {
  readonly node?: string | readonly string[] | undefined;
  readonly shard?: string | undefined;
}

/** What is wrong with the values of flags alone, for a command whose input is not read because other flags are wrong. */
export function checkFlags(flags: GivenFlags): readonly Diagnostic[] {
  const version = parseVersionChoice(flags.kubernetesVersion);
  const { diagnostics: wrongSettings } = resolveSettings(undefined, flags, startingRelease(version.choice, []));
  const names = typeof flags.node === 'string' ? [flags.node] : (flags.node ?? []);
  return [
    ...names.flatMap((name) => checkNodeName(name) ?? []),
    ...(flags.shard !== undefined && !parseShard(flags.shard) ? [diagnose('bad-shard', { shard: flags.shard })] : []),
    ...checkNamespace(flags.namespace),
    ...version.diagnostics,
    ...wrongSettings,
    ...parseAssignmentRanges(flags).diagnostics,
    ...parsePodNetworks(flags.assumeEndpoints).diagnostics,
  ].filter(isError);
}
