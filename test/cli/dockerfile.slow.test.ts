import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runProgram } from '../support/run-kpc.ts';

interface Instruction {
  readonly name: string;
  readonly text: string;
}

interface Stage {
  readonly image: string;
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

function parseDockerfile(text: string): readonly Stage[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n');
  const stages: { image: string; name: string; instructions: Instruction[] }[] = [];
  for (const line of lines.filter((each) => each.trim() !== '')) {
    const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const from = /^(\S+) AS (\S+)$/.exec(rest);
    if (name === 'FROM') stages.push({ image: from?.[1] ?? '', name: from?.[2] ?? '', instructions: [] });
    else stages.at(-1)?.instructions.push({ name, text: rest });
  }
  return stages;
}

const stages = parseDockerfile(readFileSync(join(projectFolder, 'Dockerfile'), 'utf8'));
const ignored = readFileSync(join(projectFolder, '.dockerignore'), 'utf8').trim().split('\n');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-docker-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const find = (stage: Stage | undefined, name: string) =>
  (stage?.instructions ?? []).filter((one) => one.name === name).map(({ text }) => text);

/** COPY: only what .dockerignore lets through. */
function copySources(words: readonly string[], workdir: string): void {
  const target = words.at(-1) ?? '';
  for (const source of words.slice(0, -1)) {
    if (!ignored.includes(`!${source}`)) throw new Error(`.dockerignore keeps ${source} from the build`);
    const to = target.endsWith('/') ? join(workdir, target, source) : join(workdir, target);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(projectFolder, source), to, { recursive: true });
  }
}

async function runStep(script: string, cwd: string): Promise<void> {
  const { status, stdout, stderr } = await runProgram('sh', ['-c', script], { cwd });
  if (status !== 0) throw new Error(`${script}: status ${status}\n${stdout}${stderr}`);
}

describe('the Dockerfile', () => {
  test('builds in one stage and runs kpc or kpc-apply in others, kpc by default', () => {
    expect(stages.map(({ name }) => name)).toEqual(['build', 'kpc-apply', 'kpc']);
    for (const { image, instructions } of stages) {
      expect(Number(/^node:(\d+)-bookworm-slim$/.exec(image)?.[1])).toBeGreaterThanOrEqual(20);
      for (const { name } of instructions) {
        expect(['COPY', 'ENTRYPOINT', 'ENV', 'RUN', 'USER', 'WORKDIR']).toContain(name);
      }
    }
    expect(stages.flatMap((stage) => find(stage, 'ENTRYPOINT'))).toEqual(['["kpc-apply"]', '["kpc"]']);
    expect(find(stages[2], 'USER')).toEqual(['node']);
  });

  test('gives kpc-apply the tools that it runs', () => {
    const [install = ''] = find(stages[1], 'RUN');
    for (const tool of ['iptables', 'ipset', 'ipvsadm', 'iproute2', 'kmod']) expect(install.split(' ')).toContain(tool);
  });

  // What docker build does, in folders of this machine.
  test('builds programs that run', async () => {
    const root = join(scratch, 'root');
    const workdir = join(root, find(stages[0], 'WORKDIR')[0] ?? '');
    mkdirSync(workdir, { recursive: true });
    expect(ignored[0]).toBe('*');
    for (const { name, text } of stages[0]?.instructions ?? []) {
      if (name === 'COPY') copySources(text.split(' '), workdir);
      else if (name === 'RUN') await runStep(text.replaceAll(' /opt/', ` ${root}/opt/`), workdir);
    }
    // The folder is copied to where it was: links and all lead to places in it.
    const moved = join(scratch, 'image', 'opt');
    cpSync(join(root, 'opt'), moved, { recursive: true, verbatimSymlinks: true });
    rmSync(root, { recursive: true });
    for (const program of ['kpc', 'kpc-apply']) {
      const run = await runProgram(join(moved, 'kpc', 'bin', program), ['version'], { cwd: scratch });
      expect(run).toMatchObject({ status: 0, stdout: expect.stringMatching(new RegExp(`^${program} \\d`)) });
    }
    expect(existsSync(join(moved, 'kpc', 'lib', 'node_modules', 'kube-proxy-compiler', 'node_modules'))).toBe(false);
  });
});
