import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { checksInTests } from './scripts/checks-module.mjs';
import { codesInTests } from './scripts/codes-module.mjs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Takes minutes: large input, other versions of Node, npm itself. */
const slowTests = 'test/**/*.slow.test.ts';

/** Test files of which `npm test` tries a part, and `npm run test:slow` all: see test/support/rounds.ts. */
const partlySlow = readdirSync(join(import.meta.dirname, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.slow.test.ts'))
  .map((name) => join('test', name))
  .filter((path) => readFileSync(join(import.meta.dirname, path), 'utf8').includes('support/rounds.ts'));

/** Those that take minutes: they begin first, or the last of them leaves every core but one idle. */
const longest = ['test/architecture/patterns.slow.test.ts', 'test/cli/endless.slow.test.ts'];

/** Project by project, for a process keeps its modules only while the next file is of the same one. */
const order = ['cluster', 'slow', 'kube-proxy', 'fast'];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) =>
      longest.some((name) => moduleId.endsWith(name)) ? -1 : order.indexOf(project.name);
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Where both are run, what `npm run test:slow` tries whole is not tried in part as well: .ci/run sets it. */
const triesOnce = process.env['KPC_EACH_ONCE'] === '1';

const rewrites = process.env['UPDATE_GOLDEN'] === '1' || process.env['UPDATE_DOCS'] === '1';

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8')) as { version: string };

const shared = {
  // A process runs one test file after the other and keeps the modules: none of them has a state, so that no file can tell.
  isolate: false,
  setupFiles: 'test/support/signal-listeners.ts',
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // Concurrent tests may run the built program, a process each.
  maxConcurrency: availableParallelism() * 2,
};

export default defineConfig({
  plugins: [checksInTests, codesInTests],
  // As in the built programs: see src/base/version.ts.
  define: { KPC_VERSION: JSON.stringify(version) },
  test: {
    // Vitest itself would leave a core to its main process, which has next to nothing to do. Where tests rewrite pages and
    // fixtures, other tests read them.
    maxWorkers: rewrites ? 1 : availableParallelism(),
    sequence: { sequencer: LongestFirst },
    projects: [
      // All recordings of kube-proxy: thousands of compilations, a file each mode.
      { extends: true, test: { ...shared, name: 'kube-proxy', include: ['test/kube-proxy/*.recorded.ts'] } },
      // Beside a real API server, which test/cluster/run.mjs builds: one file after the other.
      {
        extends: true,
        test: {
          ...shared,
          name: 'cluster',
          include: ['test/cluster/*.cluster.ts'],
          globalSetup: 'test/cluster/start-cluster.ts',
          fileParallelism: false,
        },
      },
      {
        extends: true,
        test: {
          ...shared,
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: [slowTests, ...(triesOnce ? partlySlow : [])],
          // A test that hangs ends. The longest takes three seconds on an idle core.
          testTimeout: 90_000,
          hookTimeout: 90_000,
        },
      },
      {
        extends: true,
        test: { ...shared, name: 'slow', include: [slowTests, ...partlySlow], env: { KPC_ALL_ROUNDS: '1' } },
      },
    ],
  },
});
