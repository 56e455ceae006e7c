import { isInRevision, repositoryPaths } from '../../git/revision-paths.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { loadFile } from '../../input/files/load-files.ts';
import type { FileTree } from '../../input/files/file-tree.ts';
import { openPaths, type OpenedPaths } from '../../snapshot/files/open.ts';
import { readStoredSide, type SideOptions } from '../../snapshot/files/read-side.ts';
import { type FileOptions, loadInputs } from '../../snapshot/files/read-texts.ts';
import type { Opened, Reading } from '../../snapshot/open/stored-side.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { TestRun } from '../test.ts';
import { lintLoaded, optionsOfLint } from '../lint.ts';
import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import { Cluster, type KubectlAnswer, type ClusterUse, type UnreadResource } from '../../programs/ask-cluster.ts';
import { callWords, longestRun, type ProgramCall } from '../../programs/run-program.ts';
import { sayFinding } from '../../say/words/said.ts';
import { Refusal, refuse } from '../refusal.ts';

export { isInRevision, openPaths, repositoryPaths };
export type { FileOptions, FileTree, Opened, OpenedPaths, Reading, SideOptions, Snapshot };

export type ReadFiles = Reading['files'];

/** Finds the first path that is not manifests. `diagnostics`: why the path cannot be read, if it cannot be read. */
export async function findOther(paths: readonly string[], node?: string) {
  for (const path of paths) {
    const { kind, diagnostics } = await readStoredSide(path, { node });
    if (kind !== 'manifests') return { path, kind, diagnostics };
  }
  return undefined;
}

/** Reads and runs tests. Reports unreadable files. `stdin`: the text for "-". */
export function readTestFiles(
  paths: readonly string[],
  stdin: Parameters<typeof loadFile>[1],
  run: (files: readonly TextFile[]) => TestRun,
) {
  const read = paths.map((path) => loadFile(path, path === '-' ? stdin : undefined));
  const files = read.filter((file) => file instanceof TextFile);
  const made = run(files);
  for (const file of read) if (!(file instanceof TextFile)) made.report(file);
  return { run: made, files: new Map(files.map((file) => [file.name, file])) };
}

export async function lintFiles(
  options: FileOptions & { readonly node?: string | undefined },
  words: Parameters<typeof lintLoaded>[2],
) {
  const loaded = await loadInputs(optionsOfLint(options));
  return { ...lintLoaded(loaded, options, words), files: loaded.files };
}

/**
 * Returns kubectl's output, the lists that could not be read and that no option replaces, and a warning about these. Refuses if objects
 * that are needed cannot be read. `context`: a context in the kubeconfig.
 */
export async function readCluster(
  context: string | undefined,
  ask: ClusterUse | ((cluster: Cluster) => Promise<KubectlAnswer>),
  options: FileOptions & { readonly strict?: boolean },
  onCall: (call: ProgramCall) => Promise<void>,
) {
  const asked = new Cluster(context, onCall);
  const answer = await (typeof ask === 'string' ? asked.readObjects(ask) : ask(asked));
  if (answer.kind === 'failed') {
    const { call, failure } = answer;
    const { problem: how, said } = failure;
    refuse({ problem: 'program-failed', call: callWords(call), tool: call[0], how, said, limit: longestRun / 1000 });
  }
  const unread = answer.unread.filter(({ list }) => {
    return !standIns[list]?.some((option) => options[option] !== undefined);
  });
  // A result that will be written must be complete.
  const isExact = options.strict === true || ask === 'rules';
  return {
    text: answer.text,
    unread: new Set(unread.flatMap(({ list }) => (list === 'kube-proxy' ? [] : list))),
    warning: judgeUnread(unread, isExact),
  };
}

export { callWords };
export type { KubectlAnswer, Cluster, ClusterUse };

/** If one of these lists is missing, nothing is known about a Service on a node. */
const needed: ReadonlySet<UnreadResource['list']> = new Set(['services', 'slices', 'nodes']);

const standIns: { readonly [List in UnreadResource['list']]?: readonly (keyof FileOptions)[] } = {
  'kube-proxy': ['config', 'proxyMode'],
  serviceCidrs: ['serviceClusterIpRange'],
};

function judgeUnread(unread: readonly UnreadResource[], isExact: boolean): Finding | undefined {
  const fatal = isExact ? unread : unread.filter(({ list }) => needed.has(list));
  const said = fatal.length > 0 ? fatal : unread;
  if (said.length === 0) return undefined;
  const kinds = said.map(({ name }) => name);
  const found = { kinds, lists: said.map(({ list }) => list), isNeeded: fatal.length > 0 };
  const finding = diagnose('unread-cluster', found);
  if (isError(finding)) throw new Refusal(sayFinding(finding));
  return finding;
}
