// An esbuild plugin that puts off loading some modules until something of theirs is used: starting is most of what a
// small run does, and it needs little of what the program can do.
// @ts-check

/** Packages and modules of Node's own that take long to load and that many runs do without. */
const lateModules = new Set(['chalk', 'yaml', 'node:child_process', 'node:crypto', 'node:stream/consumers']);

/**
 * Puts getters in the place of what a module exports. Takes CommonJS output, where an import may load anything late.
 *
 * @type {import('esbuild').Plugin}
 */
export const loadLate = {
  name: 'load-late',
  setup({ onResolve, onLoad }) {
    const namespace = 'late';
    onResolve({ filter: /^[\w:/]+$/ }, ({ path, namespace: importer }) =>
      lateModules.has(path) && importer !== namespace ? { path, namespace } : undefined,
    );
    onLoad({ filter: /^/, namespace }, async ({ path }) => {
      const names = Object.keys(await import(path));
      return {
        contents: `
          let loaded;
          const load = () => (loaded ??= require(${JSON.stringify(path)}));
          for (const name of ${JSON.stringify(names)}) {
            Object.defineProperty(exports, name, { enumerable: true, get: () => load()[name] });
          }`,
        resolveDir: import.meta.dirname,
      };
    });
  },
};
