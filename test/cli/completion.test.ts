import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { completeWords, splitShellLine } from '../../src/cli/shared/common-commands.ts';
import { findingCodes } from '../../src/base/findings/codes.ts';
import { readPrograms, visibleFlags } from '../../packaging/programs.ts';
import { projectFolder, runKpc, runKpcApply, runProgram } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-completion-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const manifests = join(projectFolder, 'fixtures', 'quickstart', 'svc.yaml');

/** How each shell is asked what it would offer for a line. It runs the very script that users source. */
const shells = {
  bash: (program: string, line: string, script: string) => {
    // As bash itself does, words also begin after = and :.
    const part = /[^ =:'"]*$/.exec(line)?.[0] ?? '';
    return [
      '--norc',
      '-c',
      `source "$3"; COMP_LINE=$1 COMP_POINT=\${#1}; _${program.replace('-', '_')} ${program} "$2"
       printf '%s\\n' "\${COMPREPLY[@]}"; complete -p ${program} >&2`,
      'bash',
      line,
      part,
      script,
    ];
  },
  zsh: (program: string, line: string, script: string) => [
    '-f',
    '-c',
    `compdef() { :; }; _files() { print FILES; }
     compadd() { print -rl -- "\${(@P)5}"; }
     source "$2"
     words=("\${(@s: :)1}"); CURRENT=$#words; PREFIX=$words[-1]; _${program.replace('-', '_')}`,
    'zsh',
    line,
    script,
  ],
  fish: (_program: string, line: string, script: string) => [
    '--no-config',
    '-c',
    'source $argv[2]; complete -C $argv[1]',
    line,
    script,
  ],
} as const;

function isInstalled(shell: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, shell)));
}

describe.each(['bash', 'zsh', 'fish'] as const)('completion in %s', (shell) => {
  const bin = join(scratch, `bin-${shell}`);
  const env = { PATH: `${bin}${delimiter}${process.env['PATH']}`, HOME: scratch };

  beforeAll(async () => {
    mkdirSync(bin);
    for (const [program, run] of [
      ['kpc', runKpc],
      ['kpc-apply', runKpcApply],
    ] as const) {
      symlinkSync(join(projectFolder, 'bin', `${program}.js`), join(bin, program));
      writeFileSync(join(bin, `${program}.${shell}`), (await run(['completion', shell])).stdout);
    }
  });

  /** The words that the shell offers, without what it says of them. */
  async function offered(line: string, cwd = scratch): Promise<readonly string[]> {
    const [program = ''] = line.split(' ');
    const { stdout, stderr } = await runProgram(shell, shells[shell](program, line, join(bin, `${program}.${shell}`)), {
      cwd,
      env,
    });
    expect(stderr).not.toMatch(/error|not found/i);
    return stdout
      .split('\n')
      .filter(Boolean)
      .map((each) => each.split('\t')[0] ?? '');
  }

  test.skipIf(!isInstalled(shell))('offers commands, flags, choices, codes, Services and nodes', async () => {
    expect(await offered('kpc com')).toEqual(['compile', 'completion']);
    expect(await offered('kpc-apply veri')).toEqual(['verify']);
    expect(await offered(`kpc describe -f ${manifests} ng`)).toEqual(['nginx']);
    // What kpc answers is the same in each: the rest is asked as the shell's script asks, below.
    if (shell !== 'bash') return;
    expect(await offered('kpc compile --golde')).toEqual(['--golden']);
  });

  test.skipIf(!isInstalled(shell))('completes a value behind =', async () => {
    const whole = '--proxy-mode=nftables';
    expect(await offered('kpc compile --proxy-mode=nf')).toEqual([shell === 'bash' ? 'nftables' : whole]);
  });

  test.runIf(shell === 'bash')('reads the manifests that kpc.yaml names', async () => {
    const folder = mkdtempSync(join(scratch, 'configured-'));
    writeFileSync(join(folder, 'kpc.yaml'), `file: [svc.yaml]\n`);
    writeFileSync(
      join(folder, 'svc.yaml'),
      'apiVersion: v1\nkind: Service\nmetadata: { name: checkout }\nspec: { ports: [{ port: 80 }] }\n',
    );
    expect(await offered('kpc describe che', folder)).toEqual(['checkout']);
    expect(await offered('kpc trace --to svc/', folder)).toEqual(['svc/checkout']);
  });

  test.skipIf(!isInstalled(shell))('runs nothing of what is typed, nor of what a manifest says', async () => {
    const folder = mkdtempSync(join(scratch, 'hostile-'));
    const names = ['$(touch pwned)', '`touch pwned`', "a'; touch pwned; '", 'a b', '*', '-rf', '[code]'];
    const services = names.map((name) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
    }));
    writeFileSync(join(folder, 'svc.json'), services.map((each) => JSON.stringify(each)).join('\n---\n'));
    expect(await offered('kpc describe -f svc.json $(touch pwned', folder)).not.toContain('$(touch pwned)');
    if (shell === 'bash') await offered('kpc describe -f $(touch pwned) ', folder);
    await offered('kpc describe -f svc.json ', folder);
    expect(existsSync(join(folder, 'pwned'))).toBe(false);
  });
});

describe('what kpc offers', async () => {
  test.each<readonly [line: string, words: readonly string[]]>([
    ['kpc compile --print ip6', ['ip6tables']],
    ['kpc explain bad-v', findingCodes.filter((code) => code.startsWith('bad-v'))],
    [`kpc describe -f ${manifests} default/`, ['default/nginx']],
    [`kpc describe ${manifests} def`, ['default/nginx']],
    [`kpc trace ${manifests} --all def`, ['default/nginx']],
    [`kpc compile -f ${manifests} --node wor`, ['worker-1']],
    ['kpc compile --kubernetes-version 1.30', ['1.30']],
  ])('for "%s"', async (line, words) => {
    const { stdout } = await runKpc(['complete', 'bash', `${line}\n${line.split(' ').at(-1)}`], { cwd: scratch });
    expect(stdout.split('\n').filter(Boolean)).toEqual(words);
  });

  test.each(await readPrograms())('is every command and every flag of $name', async ({ program, commands }) => {
    const values = async (...words: readonly string[]) =>
      (await completeWords(program, words, async () => [])).map(({ value }) => value);
    expect(await values('')).toEqual([...commands.map((command) => command.name()), 'help']);
    for (const command of commands) {
      const flags = visibleFlags(command).map(({ long }) => long);
      expect(await values(command.name(), '-')).toEqual([...flags, '--help']);
    }
  });

  test('is only what no shell gives a meaning', async () => {
    const [kpc] = await readPrograms();
    if (!kpc) throw new Error('no kpc');
    const hostile = ['ok-name', '$(id)', 'a b', 'x;y', "q'", 'tab\tname', 'new\nline', '~root', '*'];
    const find = async () => hostile.map((value) => ({ value }));
    expect(await completeWords(kpc.program, ['explain', ''], find)).toEqual([{ value: 'ok-name' }]);
  });

  test('takes words as a shell does', () => {
    expect(splitShellLine(`kpc describe -f "a b" c\\ d 'e"f' `)).toEqual([
      'kpc',
      'describe',
      '-f',
      'a b',
      'c d',
      'e"f',
      '',
    ]);
    expect(splitShellLine('kpc  exp')).toEqual(['kpc', 'exp']);
  });
});
