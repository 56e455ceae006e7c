// Writes the declarations of a library: only those that its entries lead to.
// @ts-check
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

/** Matches the declarations of functions and values with their comments. */
const ofValue =
  /(?:\/\*\*(?:(?!\*\/)[^])*\*\/\n)?export declare (?:function|const) (\w+)(?:[^;{]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*;\n/g;

const imported = /import (?:type )?\{([^}]*)\} from ['"][^'"]+['"];\n/g;

/**
 * @param {string} root the folder with tsconfig.types.json
 * @param {readonly string[]} entries relative to root
 * @param {string} out a folder that is replaced
 */
export function writeTypes(root, entries, out) {
  const all = mkdtempSync(join(tmpdir(), 'kpc-types-'));
  try {
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    execFileSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.types.json'), '--outDir', all], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const declaredBy = entries.map((entry) => join(all, relative('src', entry).replace(/\.ts$/, '.d.ts')));
    const homes = new Set(declaredBy.map((path) => dirname(path)));
    const texts = withoutUnused(
      readReached(declaredBy, (path) => readFileSync(path, 'utf8')),
      homes,
    );
    rmSync(out, { recursive: true, force: true });
    for (const [path, text] of readReached(declaredBy, (each) => texts.get(each) ?? '')) {
      const target = join(out, relative(all, path));
      mkdirSync(dirname(target), { recursive: true });
      // Rename the imports, because not every compiler can import declarations as .ts.
      writeFileSync(target, text.replaceAll(anotherModule, '$1$2$3.js$2'));
    }
  } finally {
    rmSync(all, { recursive: true, force: true });
  }
}

const anotherModule = /(from |import\()(['"])(\.[^'"]+)\.ts\2/g;

/**
 * Returns the texts of the modules that these modules lead to.
 *
 * @param {readonly string[]} paths
 * @param {(path: string) => string} read
 */
function readReached(paths, read) {
  const reached = new Map(paths.map((path) => [path, read(path)]));
  for (const [path, text] of reached) {
    for (const [, , , to] of text.matchAll(anotherModule)) {
      const other = join(dirname(path), `${to}.d.ts`);
      if (!reached.has(other)) reached.set(other, read(other));
    }
  }
  return reached;
}

/**
 * Leaves out functions and values that no other declaration names, and imports that these alone need: no user of the library can reach them.
 *
 * @param {ReadonlyMap<string, string>} texts
 * @param {ReadonlySet<string>} homes the folders of the entries, whose declarations are all kept
 * @returns {ReadonlyMap<string, string>}
 */
function withoutUnused(texts, homes) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const text of texts.values())
    for (const [word] of text.matchAll(/\w+/g)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return new Map(
    [...texts].map(([path, text]) => {
      if (homes.has(dirname(path))) return [path, text];
      const needed = text.replaceAll(ofValue, (whole, name) => (counts.get(name) === 1 ? '' : whole));
      /** @type {Map<string, number>} */
      const words = new Map();
      for (const [word] of needed.matchAll(/\w+/g)) words.set(word, (words.get(word) ?? 0) + 1);
      return [
        path,
        needed.replaceAll(imported, (whole, names) => {
          const kept = names
            .split(',')
            .filter((/** @type {string} */ each) => (words.get(/(\w+)\s*$/.exec(each)?.[1] ?? '') ?? 0) > 1);
          return kept.length === 0 ? '' : whole.replace(names, kept.join(','));
        }),
      ];
    }),
  );
}
