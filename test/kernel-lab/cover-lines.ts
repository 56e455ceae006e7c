// Chooses bundles that together have every kind of line.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns as few of these folders as possible, or nearly, that together have every kind of line in the tools' input. */
export function coverLines(folders: readonly string[]): readonly string[] {
  const kindsOf = new Map(folders.map((folder) => [folder, listKinds(folder)]));
  const left = new Set([...kindsOf.values()].flatMap((kinds) => [...kinds]));
  const chosen: string[] = [];
  while (left.size > 0) {
    const counts = folders.map((folder) => [...(kindsOf.get(folder) ?? [])].filter((kind) => left.has(kind)).length);
    const best = folders[counts.indexOf(Math.max(...counts))] ?? '';
    chosen.push(best);
    for (const kind of kindsOf.get(best) ?? []) left.delete(kind);
  }
  return chosen;
}

function listKinds(folder: string): ReadonlySet<string> {
  const files = readdirSync(folder).filter((name) => /\.(?:restore|batch|conf)$/.test(name));
  const linesOf = (file: string) => readFileSync(join(folder, file), 'utf8').split('\n');
  return new Set(files.flatMap((file) => linesOf(file).map((line) => `${file}: ${kindOf(line)}`)));
}

/** Returns a line without its names, addresses, protocols and numbers. */
function kindOf(line: string): string {
  return line
    .replace(/ --comment (?:"[^"]*"|\S+)/, '')
    .replaceAll(/\b(KUBE-[A-Z]+-)[A-Z2-7]{16}\b/g, '$1…')
    .replaceAll(/\[?\b[\da-f]{1,4}(?::[\da-f]{0,4}){2,}\]?/g, 'IPv6')
    .replaceAll(/\d+(?:\.\d+){3}/g, 'IPv4')
    .replaceAll(/\b(?:tcp|udp|sctp)\b/gi, 'protocol')
    .replaceAll(/\b\d+\b/g, 'number');
}
