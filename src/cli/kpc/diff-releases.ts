import { mergeDiagnostics } from '../../input/sort-diagnostics.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { checkNodes, oneNode } from '../../compile/chosen-nodes.ts';
import { chooseNodeName } from '../../compile/compile-node.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import { printable } from '../../base/printable.ts';
import { chooseReleases, compareReleases } from '../../sides/compare-releases.ts';
import { readStoredSide } from '../../sides/read-side.ts';
import { exitStatus, type ExitStatus } from '../shared/exit-status.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { printFound, type DiffOptions } from './diff-command.ts';
import { makeStrict, reportDiagnostics } from './messages.ts';
import { refuse } from '../shared/refuse.ts';

interface ReleaseDiffOptions extends DiffOptions {
  readonly toKubernetesVersion: string;
}

const toFlag = '--to-kubernetes-version';

/** kpc diff --to-kubernetes-version: what another release of Kubernetes changes on a node, of the same manifests. */
export async function runReleaseDiff(
  paths: readonly (string | undefined)[],
  options: ReleaseDiffOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const [path, second] = paths;
  const wrongPath =
    second === undefined
      ? await describeNoManifests(path)
      : ([`${toFlag} compares the same manifests by two releases`, `leave out ${second}`] as const);
  if (wrongPath !== undefined) {
    return refuse(terminal, ...wrongPath);
  }
  const loaded = await loadInputs(
    { ...options, file: [...(path === undefined ? [] : [path]), ...(options.file ?? [])] },
    terminal.readStdin,
  );
  const nodeName = chooseNodeName(options.node, loaded.prepared);
  const { from, to, diagnostics: wrong } = chooseReleases(loaded, nodeName, options.toKubernetesVersion, toFlag);
  const hasErrors = loaded.diagnostics.some(isError);
  const node = hasErrors ? [] : checkNodes(oneNode(nodeName, options.node), loaded.prepared);
  const mode = loaded.modeNote && !hasErrors ? [loaded.modeNote] : [];
  const diagnostics = makeStrict([...wrong, ...mode, ...mergeDiagnostics(node, loaded.diagnostics)], options);
  await reportDiagnostics(diagnostics, loaded.files, terminal);
  if (diagnostics.some(isError) || from === undefined || to === undefined) return exitStatus.badInput;
  const compared = compareReleases(loaded, path ?? '-f', { nodeName, from, to }, options);
  for (const note of compared.notes) await say(terminal, `note: ${printable(note)}\n`);
  return printFound(compared.from, compared.to, compared.diff, options, terminal);
}

/** Why an argument cannot be compiled for two releases. */
async function describeNoManifests(path: string | undefined): Promise<readonly [string, string] | undefined> {
  if (path === undefined) return undefined;
  const { kind } = await readStoredSide(path);
  switch (kind) {
    case 'manifests':
    case 'unreadable':
      return undefined;
    case 'bundle':
    case 'dump':
      return [`${path} is a ${kind}, and ${toFlag} needs manifests`, 'name those that are in the cluster'];
  }
}
