import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readPrograms } from '../../packaging/programs.ts';
import { projectFolder } from '../support/run-kpc.ts';

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly volumeMounts: readonly { readonly name: string }[];
}

interface Workload {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector?: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: {
      readonly metadata?: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes: readonly {
          readonly name: string;
          readonly persistentVolumeClaim?: { readonly claimName: string };
        }[];
      };
    };
  };
}

const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');
const { version } = JSON.parse(read('package.json')) as { readonly version: string };
const objects = readdirSync(join(projectFolder, 'examples/kubernetes')).flatMap((name) =>
  parseAllDocuments(read(`examples/kubernetes/${name}`)).map((document) => document.toJS() as Workload),
);
const workloads = objects.filter(({ kind }) => kind === 'Job' || kind === 'DaemonSet');
const claims = objects.filter(({ kind }) => kind === 'PersistentVolumeClaim').map(({ metadata }) => metadata.name);

const programs = await readPrograms();

/** Whether a program has the command and the flags of these words. */
function expectWords(name: string, words: readonly string[]): void {
  const program = programs.find((each) => each.name === name);
  const command = program?.commands.find((each) => each.name() === words[0]);
  const flags = words.filter((word) => word.startsWith('-')).map((word) => word.replace(/=.*/s, ''));
  expect(command?.options.flatMap(({ long, short }) => [long, short])).toEqual(expect.arrayContaining(flags));
}

describe('examples/kubernetes', () => {
  test('has a Job and a DaemonSet', () => {
    expect(workloads.map(({ kind }) => kind).toSorted()).toEqual(['DaemonSet', 'Job']);
  });

  test.each(workloads)('$kind: runs an image of the Dockerfile, with flags that there are', ({ kind, spec }) => {
    const { containers, volumes } = spec.template.spec;
    const targets = [...read('Dockerfile').matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, target]) => target);
    for (const { image, args, env = [], volumeMounts } of containers) {
      const [program = '', tag] = image.split(':');
      expect(targets).toContain(program);
      expect(tag).toBe(version);
      expectWords(program, args);
      const known = [...env.map(({ name }) => name), ...(kind === 'Job' ? ['JOB_COMPLETION_INDEX'] : [])];
      const used = args.flatMap((word) => [...word.matchAll(/\$\((\w+)\)/g)].map(([, name = '']) => name));
      expect(known).toEqual(expect.arrayContaining(used));
      expect(volumes.map(({ name }) => name)).toEqual(expect.arrayContaining(volumeMounts.map(({ name }) => name)));
    }
    const claimed = volumes.flatMap(({ persistentVolumeClaim: claim }) => claim?.claimName ?? []);
    expect(claims).toEqual(expect.arrayContaining(claimed));
    expect(spec.template.metadata?.labels).toEqual(spec.selector?.matchLabels);
  });
});

describe('.pre-commit-hooks.yaml', () => {
  const hooks = parse(read('.pre-commit-hooks.yaml')) as readonly {
    readonly id: string;
    readonly entry: string;
    readonly language: string;
    readonly files: string;
  }[];

  test.each(hooks)('$id runs a command of kpc with flags that there are', ({ entry, language, files }) => {
    const [program = '', ...words] = entry.split(' ');
    expectWords(program, words);
    expect(language).toBe('node');
    expect(new RegExp(files).test('services/web.yaml')).toBe(true);
  });
});

describe('.github/workflows/release.yml', () => {
  test('runs scripts that there are, and lets no step have more than the job needs', () => {
    const workflow = parse(read('.github/workflows/release.yml')) as {
      readonly permissions: unknown;
      readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly run?: string }[] }>>;
    };
    expect(workflow.permissions).toEqual({ contents: 'read' });
    const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> };
    const commands = Object.values(workflow.jobs).flatMap(({ steps }) => steps.map(({ run = '' }) => run));
    const named = commands.flatMap((text) => [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name));
    expect(named).toEqual(['test:all', 'check', 'test:packages']);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
    // What an input says would run as a command.
    expect(commands.filter((text) => /\$\{\{ *github\./.test(text))).toEqual([]);
  });
});
