import { quotePrintable } from '../base/printable.ts';
import type { Cluster, NodeContext } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Family } from '../kernel/family.ts';
import type { KernelState } from '../kernel/state.ts';
import { nodeOfBundle } from './bundle-node.ts';
import { checkManifestValues, checkServiceValues } from './check-values.ts';
import { freshTexts } from './bundle-texts.ts';
import { makeBundle, type Bundle, type BundleFiles } from './make-bundle.ts';
import { settingsOf, bundleFileNames, type Manifest } from './manifest.ts';
import type { BundleMeaning, StoredBundle } from './read-bundle.ts';
import { describeStrangeLine } from './strange-lines.ts';

/** What kpc makes of Services for a node: handed in, because a bundle knows no mode. */
export type Compile = (
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  families: readonly Family[],
) => KernelState;

/** How many problems of one file are told one by one. */
const mostOfFile = 50;

/** The same of what was dumped from a node: no Services say what it means, so it is for comparing only. */
export function checkDumpedForms({ state }: StoredBundle): readonly string[] {
  return [...state.sysctls].flatMap(([name, value]) => {
    const shown = quotePrintable(name);
    if (!/^net\.(ipv4|ipv6|netfilter|bridge)\.[\w.-]+$/.test(name))
      return [`sysctl.conf: ${shown} is not a network sysctl`];
    return /^\d+$/.test(value)
      ? []
      : [`sysctl.conf: ${shown} is set to ${quotePrintable(value)}, which is not a number`];
  });
}

/**
 * The state of a bundle, where it holds what kpc writes and nothing else (see checkForms); undefined where it does not. It is
 * the compiled one: the same bytes mean the same, so that no file of a tool need be read back.
 */
export function compileChecked(
  { manifest, cluster }: BundleMeaning,
  files: BundleFiles,
  compile: Compile,
): KernelState | undefined {
  try {
    if (checkManifestValues(manifest).length > 0 || checkServiceValues(cluster, manifest).length > 0) return undefined;
    const { state, fresh } = compileAnew({ manifest, cluster }, compile);
    if (compareManifests(manifest, fresh.manifest).length > 0) return undefined;
    if (bundleFileNames.some((name) => files.get(name) !== fresh.files.get(name))) return undefined;
    return { ...state, ipvsTimeouts: manifest.ipvsTimeouts ?? undefined };
  } catch {
    // checkForms says what is wrong with it.
    return undefined;
  }
}

/**
 * What of a bundle kpc would not have written, a line each. services.json and manifest.json say what a bundle means: what is
 * in them must be values that Kubernetes and kube-proxy have, and every other file must be, byte by byte, what comes of
 * compiling them. So the forms that a bundle may have are those of the compiler, and no list of them can fall behind it.
 */
export function checkForms(bundle: BundleMeaning, files: BundleFiles, compile: Compile): readonly string[] {
  const { manifest, cluster } = bundle;
  const values = [...checkManifestValues(manifest), ...cut('services.json', checkServiceValues(cluster, manifest))];
  try {
    return [...values, ...compareWithCompiled(bundle, files, compile)];
  } catch (error) {
    // No rule can be written with some of what has been found wrong already.
    if (values.length > 0) return values;
    throw error;
  }
}

function compareWithCompiled(bundle: BundleMeaning, files: BundleFiles, compile: Compile): readonly string[] {
  const { fresh } = compileAnew(bundle, compile);
  return [
    ...compareManifests(bundle.manifest, fresh.manifest),
    ...bundleFileNames.flatMap((name) => cut(name, compareFiles(name, files.get(name), fresh.files.get(name)))),
  ];
}

/** What kpc makes of a bundle's own meaning. The files are compared themselves, so their checksums are not made again. */
function compileAnew(
  { manifest, cluster }: BundleMeaning,
  compile: Compile,
): { readonly state: KernelState; readonly fresh: Bundle } {
  const { families, assigned, assumedEndpoints, kpcVersion } = manifest;
  const settings = settingsOf(manifest);
  const node = nodeOfBundle(manifest);
  const state = compile(cluster, node, settings, families);
  const content = { state, cluster, node, settings, families, assigned, assumedEndpoints, kpcVersion };
  return { state, fresh: makeBundle(content, { ...freshTexts, digest: () => '' }) };
}

/** The fields that follow from the others, and that kpc-apply goes by or shows. */
const derived = [
  'kubeProxyVersion',
  'mode',
  'serviceCidrs',
  'healthChecks',
  'tools',
  'counts',
] as const satisfies readonly (keyof Manifest)[];

function compareManifests(found: Manifest, fresh: Manifest): readonly string[] {
  const strangers = Object.keys(found.files).filter((name) => !bundleFileNames.some((known) => known === name));
  return [
    ...derived
      .filter((key) => toText(found[key]) !== toText(fresh[key]))
      .map((key) => `manifest.json: ${key} does not match services.json and the settings`),
    ...strangers.map((name) => `manifest.json: files lists ${quotePrintable(name)}, which is not a file of a bundle`),
  ];
}

/** The same for the same fields in any order. */
function toText(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}

/** What is in a file and should not be, what is not and should, and, where neither is so, what stands in another place. */
function compareFiles(name: string, found: string | undefined, fresh: string | undefined): readonly string[] {
  if (found === fresh) return [];
  if (found === undefined) return [`${name} is missing`];
  if (fresh === undefined) return [`${name}: a bundle of this mode and these families has no such file`];
  const lines = found.split('\n');
  const wanted = fresh.split('\n');
  const left = countLines(wanted);
  const problems: string[] = [];
  lines.forEach((line, i) => {
    const count = left.get(line) ?? 0;
    if (count > 0) left.set(line, count - 1);
    else problems.push(`${name}:${i + 1}: ${describeStrangeLine(name, line, fresh)}`);
  });
  const [missing, ...others] = [...left].filter(([, count]) => count > 0).map(([line]) => quotePrintable(line));
  if (missing !== undefined) {
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    problems.push(`${name}: lines that services.json calls for are missing: ${missing}${more}`);
  }
  if (problems.length > 0) return problems;
  const at = lines.findIndex((line, i) => line !== wanted[i]);
  return [`${name}:${at + 1}: is not where kpc writes it: ${quotePrintable(lines[at] ?? '')}`];
}

function countLines(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

function cut(name: string, problems: readonly string[]): readonly string[] {
  if (problems.length <= mostOfFile + 1) return problems;
  return [...problems.slice(0, mostOfFile), `${name}: and ${problems.length - mostOfFile} more of this kind`];
}
