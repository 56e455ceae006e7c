import { existsSync, readdirSync } from 'node:fs';
import { holdsReal, replaceFolder, writeQuickly } from '../../bundle/folder.ts';
import { makeGolden } from '../../bundle/golden.ts';
import { formatFile, joinFiles, makeBundle, makeLongBundle } from '../../bundle/make-bundle.ts';
import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import { openTrees } from '../../git/revision-paths.ts';
import { proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { modeOfPrint, printNames } from '../../say/bundle-text.ts';
import type { FolderForm } from '../../bundle/state-files.ts';
import type { CheckWords } from '../../say/check-report.ts';
import {
  isHostFolder,
  loadConfiguration,
  loadInputs,
  readHostFolder,
  type FileOptions,
} from '../../snapshot/files/read-texts.ts';
import { compileLoaded, isFleet, type Compilation, type FleetChoice } from '../../snapshot/open/compile.ts';
import { chooseNodeName, compileState } from '../../snapshot/open/compile-node.ts';
import { checkNodeName } from '../../snapshot/open/chosen-nodes.ts';
import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { Refusal, refuse } from '../refusal.ts';
import { sayFinding } from '../../say/words/said.ts';

export { isFleet, printNames };

export type { FolderForm };

export type WordsOfForm = (form: FolderForm, adds: readonly string[]) => CheckWords;

export interface CompileRequest extends Omit<FileOptions, 'node'>, FleetChoice {
  /** The folder to write a bundle or golden to, or to compare with. Only one of `out`, `golden` and `check` is set. */
  readonly out?: string | undefined;
  readonly golden?: string | undefined;
  readonly check?: string | undefined;
  readonly print?: string | undefined;
  readonly allowEmpty?: boolean | undefined;
}

export interface OpenedToCompile {
  readonly loaded: LoadedInputs;
  readonly refusals: readonly Finding[];
  /** The node of the folder to check. Set if nothing names a node and the input alone would lead to another node. */
  readonly nodeOfFolder?: string | undefined;
}

export async function openToCompile(options: CompileRequest): Promise<OpenedToCompile> {
  const { check, config, print, hostAddresses } = options;
  const hasMany = isFleet(options);
  if (config !== undefined && print !== undefined) expectPrinted(print, await loadConfiguration(options));
  const asked = await loadInputs({
    ...options,
    // If there are many nodes, their addresses are read once the nodes are known.
    hostAddresses: isHostFolder(hostAddresses) || hasMany ? undefined : hostAddresses,
    // A check also reports facts that a golden does not record.
    traffic: check !== undefined,
    emptyResult: options.allowEmpty ? 'allowed' : replacesFiles(options) ? 'refused' : 'of-a-cluster',
  });
  expectPrinted(print, asked);
  const implied = impliedMode(asked, print);
  const loaded = implied === undefined ? asked : asked.inMode(implied);
  if (check === undefined) return { loaded, refusals: [] };
  const { problem, node } = await lookAtChecked(check, hasMany);
  const isOpen = !hasMany && options.node?.[0] === undefined && loaded.settings.hostnameOverride === '';
  const isOther = node !== undefined && loaded.nodes.has(node) && node !== chooseNodeName(undefined, loaded);
  const nodeOfFolder = isOpen && isOther ? node : undefined;
  // Of the notes about the mode, only the note that no mode is named is kept. The folder itself shows any other mode.
  const modeNote = loaded.modeNote?.code === 'default-mode' ? loaded.modeNote : undefined;
  return { loaded: { ...loaded, modeNote }, refusals: problem ? [problem] : [], nodeOfFolder };
}

function expectPrinted(print: string | undefined, { modeNote, settings: { mode }, diagnostics }: LoadedInputs): void {
  if (modeNote?.code !== 'default-mode' && !diagnostics.some(isError)) expectInMode(print, mode);
}

function expectInMode(print: string | undefined, mode: ProxyMode): void {
  if (print !== undefined && modeOfPrint(print, mode) !== undefined)
    refuse({ problem: 'no-such-file', file: printNames.get(print) ?? '', mode });
}

/** Returns the mode that has the file to print. Undefined if the input or a flag names a mode. */
function impliedMode({ modeNote, settings }: LoadedInputs, file: string | undefined): ProxyMode | undefined {
  if (file === undefined || modeNote?.code !== 'default-mode') return undefined;
  return modeOfPrint(file, settings.mode);
}

/** `problem`: why the input cannot be compared with the folder. */
export async function lookAtChecked(checked: string, hasMany: boolean) {
  const { checkFolder, nodeOfFolder } = await import('../../snapshot/files/check-folder.ts');
  const { trees, faults } = await openTrees([checked]);
  const tree = trees.get(checked);
  const problem = faults.get(checked) ?? checkFolder(checked, hasMany, tree);
  return { problem, node: problem ? undefined : nodeOfFolder(checked, tree) };
}

/**
 * Reports whether the result would replace files. The result for a whole cluster may be empty. An empty result must not replace a bundle or
 * golden, because these may program Services.
 */
function replacesFiles({ out, golden, check: checked }: CompileRequest): boolean {
  const folder = out ?? golden ?? checked;
  try {
    return folder !== undefined && existsSync(folder) && readdirSync(folder).length > 0;
  } catch {
    // The problem is reported later, when the folder is written.
    return false;
  }
}

export async function findEmptyInput(
  { loaded: { diagnostics, services, nodes } }: OpenedToCompile,
  { file = [], readStdin }: CompileRequest,
): Promise<Finding | undefined> {
  const isEmpty = services.length === 0 && (nodes.size === 0 || diagnostics.some(isError));
  if (!isEmpty && !diagnostics.some(({ code }) => code === 'not-an-object')) return undefined;
  const { describeNoManifests } = await import('../../snapshot/files/read-side.ts');
  return describeNoManifests(file, { readStdin });
}

export function compileOne(
  { loaded, refusals, nodeOfFolder }: OpenedToCompile,
  { file, node: nodes = [], ipFamily, hostAddresses: path }: CompileRequest,
): Compilation {
  const [node = nodeOfFolder] = nodes;
  const nodeName = chooseNodeName(node, loaded);
  const host = isHostFolder(path) ? readHostFolder(path, [nodeName]) : undefined;
  const wrong = [...(host?.diagnostics ?? []), ...nodes.flatMap((name) => checkNodeName(name) ?? []), ...refusals];
  const own = host ? { ...loaded, hostAddresses: host.addresses.get(nodeName) } : loaded;
  return compileLoaded(own, { node, ipFamily, name: file?.join(', ') }, wrong);
}

/** Writes to the folder that the options name, if they name one. Refuses a result that cannot be written. */
export async function writeSnapshot(
  snapshot: CompiledSnapshot,
  { out, golden, assume }: Pick<CompileRequest, 'out' | 'golden' | 'assume'>,
) {
  const bundle = makeLongBundle(snapshot);
  const { manifest } = bundle;
  if (out !== undefined && assume && (await holdsReal(out, manifest)))
    refuse({ problem: 'replaces-real', folder: out });
  if (out !== undefined) {
    const problem = await replaceFolder(out, bundle.files);
    if (problem) refuse({ problem: 'folder', wrong: problem });
  } else if (golden !== undefined) await writeGolden(golden, snapshot);
  return { manifest, folder: out ?? golden, files: () => joinFiles(bundle) };
}

export async function writeGolden(folder: string, snapshot: CompiledSnapshot): Promise<void> {
  const problem = await replaceFolder(folder, makeGolden(snapshot, compileState), writeQuickly);
  if (problem) refuse({ problem: 'folder', wrong: problem });
}

/** Refuses calls that no input lets write anything: those for a file that the mode lacks, or for several nodes without a folder. */
export function expectTarget(options: CompileRequest): void {
  const { print, out, golden, check } = options;
  if (isFleet(options) && (print ?? out ?? golden ?? check) === print) refuse({ problem: 'no-folder' });
  const mode = proxyModes.find((each) => each === options.proxyMode);
  if (mode) expectInMode(print, mode);
}

export function formatOne(name: string, snapshot: CompiledSnapshot): string {
  const file = printNames.get(name) ?? 'manifest.json';
  const text = file === 'manifest.json' ? makeBundle(snapshot).files.get(file) : formatFile(file, snapshot);
  const { settings, families } = snapshot;
  return text ?? refuse({ problem: 'no-such-file', file, mode: settings.mode, families });
}

export async function checkSnapshot(folder: string, snapshot: CompiledSnapshot, wordsFor: WordsOfForm) {
  const { checkBundleFolder, lookInto } = await import('../../snapshot/files/check-folder.ts');
  const tree = (await openTrees([folder])).trees.get(folder);
  const form = lookInto(folder, tree).kind === 'golden' ? 'golden' : 'bundle';
  const fresh = form === 'golden' ? makeGolden(snapshot, compileState) : makeBundle(snapshot).files;
  const result = await checkBundleFolder(folder, fresh, tree);
  if (result.kind === 'unreadable') {
    const { fault } = result;
    if (fault.problem === 'unread') return refuse({ problem: 'unreadable', path: folder, reason: fault.reason });
    throw new Refusal(sayFinding(diagnose('bad-bundle', { path: folder, problem: fault })));
  }
  const isSame = result.kind === 'same';
  const { reportCheck } = await import('../../say/check-report.ts');
  const own = wordsFor(form, []);
  // Do not offer to overwrite a git revision, or to replace a real bundle with one that contains assumptions.
  const isKept = tree !== undefined || (form === 'bundle' && (await holdsReal(folder, makeBundle(snapshot).manifest)));
  const words = isKept ? { ...own, accept: undefined } : own;
  return { isSame, result, report: await reportCheck(folder, result, snapshot, words) };
}
