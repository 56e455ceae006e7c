import { mkdirSync, mkdtempSync, rmSync, writeFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { ipsetList, ipvsServers, ipvsTitles, natTable, service } from './pasted.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-pieces-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return file;
}

/** The result of a command, in JSON. */
const asked = async (...args: readonly string[]) => resultOf((await runKpc([...args, '--output', 'json'])).stdout);

/** The arguments of a command's findings of this code. */
async function told(code: string, ...args: readonly string[]) {
  return findingsOf((await runKpc([...args, '--output', 'json'])).stdout, code).map((each) => each.arguments);
}

/** What grep prints of a text, with some lines below each that it found, as `grep -A` does. */
function grep(word: string, text: string, below = 0): string {
  const lines = text.split('\n').slice(0, -1);
  const groups: string[][] = [];
  let last = -2;
  for (const [i] of lines.entries()) {
    const isShown = lines.slice(Math.max(0, i - below), i + 1).some((each) => each.includes(word));
    if (!isShown) continue;
    if (i !== last + 1) groups.push([]);
    groups.at(-1)?.push(lines[i] ?? '');
    last = i;
  }
  return groups.map((group) => group.map((each) => `${each}\n`).join('')).join(below > 0 ? '--\n' : '');
}

/** Before 1.24 the jump to the chain of an endpoint did not name it. */
const oldTable = natTable.replaceAll(/ -> [\d.:]+"/g, '"');
const whole = write('whole.txt', oldTable);

test('a file in a folder of a dump is read through a link only if that stays in the folder', async () => {
  const folder = join(scratch, 'linked');
  mkdirSync(join(folder, 'data'), { recursive: true });
  writeFileSync(join(folder, 'data', 'v4'), natTable);
  symlinkSync(join('data', 'v4'), join(folder, 'iptables-save'));
  const secret = write('secret', '# secret of another\n');
  symlinkSync(secret, join(folder, 'ipset-save'));
  const { status, stdout, stderr } = await runKpc(['describe', folder]);
  expect(status).toBe(0);
  expect(stdout).toContain('shop/web:http');
  expect(await told('unread-file', 'describe', folder)).toEqual([
    { expected: 'ipset save', reason: { problem: 'link-outside', folder } },
  ]);
  expect(stderr).not.toContain('secret of another');
  expect((await runKpc(['describe', secret])).status).toBe(2);
});

describe('a piece of iptables-save', () => {
  test.each([
    ['the rules of an address', grep('10.96.7.7', oldTable)],
    ['the rules of one chain', grep('KUBE-SVC-AAAA', oldTable)],
    ['the rules that capture', grep('KUBE-SERVICES', oldTable)],
    ['all but the chain of one endpoint', oldTable.replaceAll(/^-A KUBE-SEP-CCCC.*\n/gm, '').replace(/^# Gen.*\n/, '')],
  ])('does not tell endpoints whose chains it lacks: %s', async (_title, text) => {
    const piece = write('piece.txt', text);
    const table = await runKpc(['describe', piece]);
    expect(table.stdout).toMatch(/shop\/web:http .*80\/TCP +\?\n/);
    expect((await runKpc(['describe', '10.96.7.7', piece])).stdout).toMatch(/endpoints: unknown\b.*chains/);
    const { servicePorts } = await asked('describe', piece);
    expect(servicePorts[0]).not.toHaveProperty('endpoints');
  });

  test.each(['10.96.7.7', 'KUBE-SVC-AAAA', 'KUBE-SERVICES'])('grep %s: endpoints are not compared', async (word) => {
    const run = await runKpc(['diff', whole, write('piece.txt', grep(word, oldTable))]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
  });

  test('the comments of 1.24 and later tell the endpoints without their chains', async () => {
    const run = await runKpc(['describe', write('piece.txt', grep('KUBE-SVC-AAAA', natTable))]);
    expect(run.stdout).toMatch(/shop\/web:http .* 2\n/);
  });

  test('with all chains on the way, the endpoints are told and compared', async () => {
    const piece = write('piece.txt', oldTable.replaceAll(/^[^-].*\n/gm, ''));
    expect((await runKpc(['describe', piece])).stdout).toMatch(/shop\/web:http .* 2\n/);
    expect(await asked('diff', whole, piece)).toMatchObject({ differs: false, compared: { servicePorts: 1 } });
  });
});

describe('a table that lacks the chains that its rules jump to', () => {
  test('tells that kube-proxy is there, and so that the table filter was not printed', async () => {
    const text = `*mangle
:PREROUTING ACCEPT [0:0]
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:mesh-PREROUTING - [0:0]
-A PREROUTING -j mesh-PREROUTING
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
COMMIT
`;
    const manifests = write('svc.yaml', service);
    const args = ['diff', write('mesh.txt', text), manifests, '--proxy-mode', 'iptables'];
    expect((await runKpc(args)).stdout).not.toContain('(filter)');
    expect((await asked(...args)).notCompared).toContain('IPv4 rules of table filter');
  });
});

describe('a piece of a list of virtual servers', () => {
  const all = write('ipvs.txt', `${ipvsTitles}${ipvsServers}`);
  const saved = `-A -t 10.96.7.7:80 -s rr
-a -t 10.96.7.7:80 -r 10.244.1.5:8080 -m -w 1
-A -u 10.96.0.10:53 -s rr
`;

  test.each([
    ['without titles', grep('10.96.7.7:80', ipvsServers, 2)],
    ['with separators of grep -A', `${ipvsTitles}${ipvsServers.split('\n').slice(0, 3).join('\n')}\n--\n`],
  ])('is a part, %s: the others are not removed', async (_title, text) => {
    const part = write('part.txt', text);
    expect(await runKpc(['diff', all, part])).toMatchObject({ status: 0 });
    const { differs, compared, notCompared } = await asked('diff', all, part);
    expect({ differs, compared }).toMatchObject({ differs: false, compared: { servicePorts: 1 } });
    expect(notCompared).toContain('virtual servers');
  });

  test('a separator marks a part of ipvsadm -Sn too', async () => {
    const server = saved.split('\n').slice(0, 2).join('\n');
    const { differs, notCompared } = await asked(
      'diff',
      write('saved.txt', saved),
      write('part.txt', `${server}\n--\n${server}\n`),
    );
    expect(differs).toBe(false);
    expect(notCompared).toContain('virtual servers');
  });

  test.each([
    ['ipvsadm -Ln', 'TCP  10.96.7.7:80 rr\n'],
    ['ipvsadm -Sn', '-A -t 10.96.7.7:80 -s rr\n'],
  ])('of %s, the line of a virtual server alone does not tell its endpoints', async (_title, text) => {
    const piece = write('part.txt', text);
    expect((await runKpc(['describe', piece])).stdout).toMatch(/10\.96\.7\.7:80\/TCP .* \?\n/);
    expect((await runKpc(['describe', '10.96.7.7', piece])).stdout).toMatch(/endpoints: unknown\b.*real servers/);
  });

  test('a virtual server without real servers in a whole list has none', async () => {
    expect((await runKpc(['describe', write('saved.txt', saved)])).stdout).toMatch(/10\.96\.0\.10:53\/UDP .* 0\n/);
    expect((await runKpc(['describe', all])).stdout).toMatch(/10\.96\.0\.10:53\/UDP .* 0\n/);
  });

  test('one virtual server with its real servers is a part, unless a command above says that it is all', async () => {
    const one = saved.split('\n').slice(0, 2).join('\n') + '\n';
    expect(await told('reading', 'describe', write('one.txt', one))).toContainEqual(
      expect.objectContaining({ note: 'incomplete', lacks: expect.arrayContaining(['ipvsadm -Sn']) }),
    );
    const named = await runKpc(['describe', write('all.txt', `$ ipvsadm -Sn\n${one}`)]);
    expect(named.stderr).not.toContain('ipvsadm -Sn');
  });
});

describe('a chain or a set of a dump', () => {
  test('that all Service ports share is shown with its rules', async () => {
    const run = await runKpc(['describe', 'KUBE-SERVICES', whole]);
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(/^Chain KUBE-SERVICES \(.*nat.*\): 1 rule, of 1 Service port\n {2}-d 10\.96\.7\.7\/32 /);
    const json = (await runKpc(['describe', 'KUBE-SERVICES', whole, '--output', 'json'])).stdout;
    expect(resultOf(json)).toMatchObject({
      servicePorts: [],
      subjects: [{ kind: 'chain', name: 'KUBE-SERVICES', table: 'nat' }],
    });
  });

  test('a set is shown with its entries', async () => {
    const run = await runKpc(['describe', 'KUBE-CLUSTER-IP', write('sets.txt', ipsetList)]);
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(/^Set KUBE-CLUSTER-IP, hash:ip,port: 2 entries/);
    expect(run.stdout).toContain('10.96.7.7,tcp:80');
    const dual = join(projectFolder, 'fixtures/dumps/kube-proxy-ipvs-dual-stack-nodeport');
    expect(await runKpc(['describe', 'KUBE-CLUSTER-IP', dual])).toMatchObject({ status: 0 });
  });

  test('a line of iptables-save that belongs to no Service is found too', async () => {
    const line = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES';
    expect(await runKpc(['describe', line, whole])).toMatchObject({ status: 0 });
  });

  test('a chain that iptables mode left is told as such, with its rules', async () => {
    const text = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/web:http" -j KUBE-SEP-BBBBBBBBBBBBBBBB
COMMIT
`;
    const run = await runKpc(['describe', 'KUBE-SVC-AAAAAAAAAAAAAAAA', write('left.txt', text)]);
    expect(run.status).toBe(0);
    expect(run.stdout).toContain('-j KUBE-SEP-BBBBBBBBBBBBBBBB  shop/web:http\n');
    expect(run.stdout).toMatch(/iptables mode/);
  });

  test('a name that nothing has is quoted as it was typed', async () => {
    const text = 'add X 10.9.9.9,tcp:80';
    expect(await runKpc(['describe', text, whole])).toMatchObject({ status: 1 });
    expect(await told('not-found', 'describe', text, whole)).toEqual([
      { problem: 'no-subject', nothing: { kind: 'no-match', of: 'dump', text } },
    ]);
  });
});

describe('what is no dump, and says so', () => {
  test('a folder of dumps names one of them', async () => {
    const folder = join(scratch, 'dumps');
    mkdirSync(join(folder, 'node-1'), { recursive: true });
    writeFileSync(join(folder, 'node-1', 'iptables-save'), natTable);
    for (const args of [
      ['describe', folder],
      ['diff', folder, whole],
      ['compile', '-f', folder],
    ]) {
      expect(await runKpc(args)).toMatchObject({ status: 2 });
      expect(await told('nodes-folder', ...args)).toEqual([
        { path: folder, example: join(folder, 'node-1'), of: 'dumps' },
      ]);
    }
  });

  test.runIf(process.platform !== 'win32')(
    'a folder with links to folders elsewhere is not searched there',
    async () => {
      const folder = join(scratch, 'links');
      mkdirSync(folder);
      symlinkSync(join(scratch, 'dumps', 'node-1'), join(folder, 'node-1'));
      expect((await runKpc(['describe', folder])).stderr).not.toContain('[nodes-folder]');
    },
  );

  test.each([
    ['a chain', '\tchain service-2QRHZV4L-shop/web/tcp/http {\n\t\tip daddr 10.96.7.7 tcp dport 80 jump mark\n\t}\n'],
    ['a rule', '\t\tip daddr 10.96.7.7 tcp dport 80 jump mark-for-masquerade\n'],
    ['a map', '\tmap service-ips {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n\t}\n'],
  ])('%s of nft without its table asks for the table', async (_title, text) => {
    const args = ['describe', write('nft-piece', text)];
    const run = await runKpc(args);
    expect(run.status).toBe(2);
    expect(run.stderr).not.toContain('yaml-tab');
    expect(await told('unread-output', ...args)).toEqual([{ problem: 'nft', isAll: true }]);
  });
});

describe('a merge conflict', () => {
  const conflict = (text: string): string => `<<<<<<< HEAD\n${text}=======\n${text}>>>>>>> other\n`;

  test('in manifests is named with its line', async () => {
    const file = write('conflict.yaml', `${service}---\n${conflict('a: 1\n')}`);
    const run = await runKpc(['compile', '-f', file]);
    expect(run.status).toBe(2);
    const line = `${service}---\n`.split('\n').length;
    expect(run.stderr).toMatch(new RegExp(`conflict\\.yaml:${line}:1: error: .*\\[merge-conflict\\]`));
  });

  test.each([
    ['a bundle', '-o'],
    ['a golden', '--golden'],
  ])('in %s is named with its file', async (_title, flag) => {
    const folder = join(scratch, `conflict${flag}`);
    const manifests = write('svc.yaml', service);
    const options = ['-f', manifests, '--proxy-mode', 'iptables'];
    await runKpc(['compile', ...options, flag, folder]);
    const head = flag === '-o' ? 'manifest.json' : 'golden.json';
    writeFileSync(join(folder, head), conflict('{}\n'));
    const problem = { file: head, line: 1, problem: 'merge-conflict' };
    expect(await runKpc(['diff', folder, manifests])).toMatchObject({ status: 2 });
    expect(await told('bad-bundle', 'diff', folder, manifests)).toEqual([{ path: folder, problem }]);
    const check = ['compile', ...options, '--check', folder];
    expect(await runKpc(check)).toMatchObject({ status: 2 });
    expect(await told('bad-bundle', ...check)).toEqual([{ path: folder, problem }]);
  });

  test('a text that only speaks of one is none', async () => {
    const text = service.replace(/^kind: Service$/m, 'kind: Service # <<<<<<< HEAD');
    const run = await runKpc(['compile', '-f', write('words.yaml', text), '--proxy-mode', 'iptables']);
    expect(run.stderr).not.toContain('merge-conflict');
  });
});

test('Services that nft alone lists, of iptables mode, are not said to be none', async () => {
  const dump = join(projectFolder, 'test/trace/node-of-iptables-nft.txt');
  const run = await runKpc(['describe', dump]);
  expect(run).toMatchObject({ status: 1, stdout: '' });
  expect(await told('not-found', 'describe', dump)).toMatchObject([
    { problem: 'no-service', why: { kind: 'iptables-as-nft' } },
  ]);
});
