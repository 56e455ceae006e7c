import { compileLoaded } from '../../src/snapshot/open/compile.ts';
import { loadTexts, type LoadOptions, type LoadedInputs } from '../../src/snapshot/open/load-texts.ts';
import { readDumped, type DumpReading } from '../../src/ask/describe/read-dumped.ts';
import { diagnose, isError } from '../../src/base/findings/finding.ts';
import { holdsOutput } from '../../src/dumps/split-outputs.ts';
import type { CompiledSnapshot, Snapshot } from '../../src/snapshot/snapshot.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { open } from '../../src/library/index.ts';
import { sayFinding } from '../../src/say/words/said.ts';
import { compileLike, optionsLike } from '../../src/snapshot/open/compile-like.ts';
import type { Reading } from '../../src/snapshot/open/stored-side.ts';
import { sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import type { Input, Problem } from './questions.ts';
import { inPageWords } from './words.ts';

/** An input that was read. `shown` is undefined if a problem is an error. */
export interface Loaded {
  readonly kind: Shown['kind'];
  readonly nodes: readonly string[];
  readonly problems: readonly Problem[];
  readonly shown: Shown | undefined;
}

export type Shown =
  | {
      readonly kind: 'manifests';
      readonly snapshot: CompiledSnapshot;
      readonly scene: Scene;
    }
  | { readonly kind: 'dump'; readonly read: DumpReading; readonly scene: Scene };

/** Recognises objects. A text with objects is not a dump, because objects may quote a node's output, but output rarely quotes objects. */
const fieldOfObject = /(?:^|[\s{,"'])kind["']?:\s/;

export function holdsObjects(text: string): boolean {
  return fieldOfObject.test(text);
}

export function isDump(text: string): boolean {
  return !holdsObjects(text) && holdsOutput(text);
}

/** Reads manifests or the output of a node's tools. Accepts any text. */
export function readInput(input: Input): Loaded {
  const text = input.text.replace(/^\uFEFF/, '');
  return isDump(text) ? readDumpText({ ...input, text }) : readManifests({ ...input, text });
}

function optionsOf({ mode, release, assume }: Input): LoadOptions {
  return { proxyMode: mode, kubernetesVersion: release, assume, traffic: true, ipFamily: 'auto' };
}

function load({ name, text }: Pick<Input, 'name' | 'text'>, options: LoadOptions): LoadedInputs {
  const manifests = { files: [new TextFile(name, text)], diagnostics: [] };
  return loadTexts({ manifests, config: undefined, hostAddresses: undefined }, options);
}

function readManifests(input: Input): Loaded {
  const read = load(input, optionsOf(input));
  const nodes = [...new Set([...read.nodes.keys(), ...read.assumedNodes])].toSorted();
  const node = nodes.includes(input.node) ? input.node : nodes[0];
  const { snapshot, gaps, diagnostics } = compileLoaded(read, { node, ipFamily: 'auto', name: input.name });
  return {
    kind: 'manifests',
    nodes,
    problems: problemsOf([...gaps(), ...diagnostics], 'manifests'),
    shown: snapshot && { kind: 'manifests', snapshot, scene: sceneOf(snapshot) },
  };
}

function problemsOf(diagnostics: Reading['diagnostics'], kind: Shown['kind']): readonly Problem[] {
  return diagnostics.map((each) => sayFinding(each, (words) => inPageWords(words, kind)));
}

function readDumpText({ text, beside }: Input): Loaded {
  const { snapshots, diagnostics } = open({ 'the text': text }, { name: 'the dump' });
  const [bare] = snapshots;
  if (bare?.kind !== 'dump') {
    const unread: Problem = { severity: 'error', text: 'nothing here is the output of a tool that kpc reads' };
    return { kind: 'dump', nodes: [], problems: diagnostics.length > 0 ? diagnostics : [unread], shown: undefined };
  }
  const named = beside === '' || isDump(beside) ? undefined : readCluster(beside);
  const side = named ? bare.namedBy(named.cluster, named.settings.release) : bare;
  const read = readDumped(side);
  const notes = problemsOf(
    read.notes.map((note) => diagnose('reading', { problem: 'dump', ...note })),
    'dump',
  );
  const scene = sceneOf(side);
  return { kind: 'dump', nodes: [], problems: [...diagnostics, ...notes], shown: { kind: 'dump', read, scene } };
}

/** Returns the Services in manifests, which name what a dump shows; undefined if the manifests have errors. */
function readCluster(text: string) {
  const read = load({ name: '', text }, { assume: false, ipFamily: 'auto' });
  return read.diagnostics.some(isError) ? undefined : read;
}

/** Compiles manifests for comparison with a dump: in the dump's mode, for its node's addresses, by the release that fits best. */
export function readBeside(
  input: Input,
  { side: dump }: Scene,
): { side: Snapshot | undefined; problems: readonly Problem[] } {
  const options = optionsLike(dump, { traffic: true, ipFamily: 'auto', node: undefined });
  const loaded = load(input, options);
  const [first] = loaded.nodes.keys();
  const { side, diagnostics } = compileLike(input.name, loaded, dump, { ...options, node: first });
  return { side, problems: problemsOf(diagnostics, 'manifests') };
}
