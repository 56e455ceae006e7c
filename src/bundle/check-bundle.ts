import { createLocatedLines, type LocatedLines } from '../base/json/check.ts';
import { quotePrintable } from '../base/printable.ts';
import type { Manifest } from './manifest.ts';
import { bundleFileNames } from './state-files.ts';
import { freshTexts, compileContent, makeBundle, type BundleFiles, type Compile } from './make-bundle.ts';
import { checkManifestValues, checkServiceValues } from './check-values.ts';
import { findBroken, readBundle, readBundleMeaning, type BundleMeaning, type BundleReading } from './read-bundle.ts';

/**
 * Reads a bundle that may come from an attacker. services.json and manifest.json say what it means: what is in them must be
 * values that Kubernetes and kube-proxy have, and every other file must be, byte by byte, what compiling them gives. So the
 * forms that a bundle may have are those of the compiler, and no list of them can fall behind it.
 */
export function checkBundle(files: BundleFiles, compile: Compile): BundleReading {
  const meaning = readBundleMeaning(files);
  if ('kind' in meaning) return meaning;
  return meaning.manifest.dumped ? checkDumped(files) : checkCompiled(meaning, files, compile);
}

/** A dump of a node has no Services that its files could be compiled from: it is for comparing only. */
function checkDumped(files: BundleFiles): BundleReading {
  const reading = readBundle(files);
  if (reading.kind === 'broken') return reading;
  const { manifest, state } = reading.bundle;
  const problems = [...state.sysctls].flatMap(([name, value]) => {
    const shown = quotePrintable(name);
    if (!/^net\.(ipv4|ipv6|netfilter|bridge)\.[\w.-]+$/.test(name))
      return [`sysctl.conf: ${shown} is not a network sysctl`];
    if (/^\d+$/.test(value)) return [];
    return [`sysctl.conf: ${shown} is set to ${quotePrintable(value)}, which is not a number`];
  });
  return findBroken(problems, manifest) ?? reading;
}

/** The state is the compiled one: the same bytes mean the same, so that no file of a tool need be read back. */
function checkCompiled({ manifest, cluster }: BundleMeaning, files: BundleFiles, compile: Compile): BundleReading {
  const lineOf = createLocatedLines('manifest.json', files.get('manifest.json') ?? '');
  const values = [
    ...checkManifestValues(manifest, lineOf),
    ...cut('services.json', checkServiceValues(cluster, manifest)),
  ];
  try {
    const content = compileContent(manifest, cluster, compile);
    // The files are compared themselves, so their checksums are not made again.
    const fresh = makeBundle(content, { ...freshTexts, digest: () => '' });
    const problems = [
      ...values,
      ...compareManifests(manifest, fresh.manifest, lineOf),
      ...bundleFileNames.flatMap((name) => cut(name, compareFiles(name, files.get(name), fresh.files.get(name)))),
    ];
    const state = { ...content.state, ipvsTimeouts: manifest.ipvsTimeouts ?? undefined };
    return findBroken(problems, manifest) ?? { kind: 'bundle', bundle: { manifest, cluster, files, state } };
  } catch (error) {
    // No rule can be written with some of what has been found wrong already.
    const broken = findBroken(values, manifest);
    if (broken) return broken;
    throw error;
  }
}

/** Fields that follow from the others and that kpc-apply uses or shows. */
const derived: readonly (keyof Manifest)[] = [
  ...(['kubeProxyVersion', 'mode', 'serviceCidrs', 'healthChecks', 'tools', 'counts'] as const),
];

function compareManifests(found: Manifest, fresh: Manifest, lineOf: LocatedLines): readonly string[] {
  const strangers = Object.keys(found.files).filter((name) => !bundleFileNames.some((known) => known === name));
  return [
    ...derived
      .filter((key) => JSON.stringify(found[key]) !== JSON.stringify(fresh[key]))
      .map((key) => lineOf([key], `${key} does not match services.json and the settings`)),
    ...strangers.map((name) =>
      lineOf(['files', name], `files lists ${quotePrintable(name)}, which is not a file of a bundle`),
    ),
  ];
}

/** Reports where a file differs from what kpc writes: each line that is not in it, the missing ones, or another order. */
function compareFiles(name: string, found: string | undefined, fresh: string | undefined): readonly string[] {
  if (found === fresh) return [];
  if (found === undefined) return [`${name} is missing`];
  if (fresh === undefined) return [`${name}: a bundle of this mode and these families has no such file`];
  const [lines, freshLines] = [splitLines(found), splitLines(fresh)];
  const [missing, ...others] = linesBeyond(freshLines, lines);
  const extra = linesBeyond(lines, freshLines);
  const moved = lines.findIndex((line, i) => line !== freshLines[i]);
  const strange = extra.length > 0 || missing ? extra : [{ line: lines[moved] ?? '', number: moved + 1 }];
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  return [
    ...strange.map(({ line, number }) => `${name}:${number}: not what kpc writes: ${quoteLine(line)}`),
    ...(missing
      ? [`${name}:${missing.number}: what services.json calls for is missing: ${quoteLine(missing.line)}${more}`]
      : []),
  ];
}

/** Keeps the line ends: the last line may have none. */
function splitLines(text: string): readonly string[] {
  return text.split(/(?<=\n)/);
}

function quoteLine(line: string): string {
  return quotePrintable(line.replace(/\n$/, ''));
}

/** The lines that are more often in one text than in the other. */
function linesBeyond(lines: readonly string[], others: readonly string[]) {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.flatMap((line, i) => {
    const count = left.get(line) ?? 0;
    if (count > 0) left.set(line, count - 1);
    return count > 0 ? [] : { line, number: i + 1 };
  });
}

const mostOfFile = 50;

function cut(name: string, problems: readonly string[]): readonly string[] {
  if (problems.length <= mostOfFile + 1) return problems;
  return [...problems.slice(0, mostOfFile), `${name}: and ${problems.length - mostOfFile} more of this kind`];
}
