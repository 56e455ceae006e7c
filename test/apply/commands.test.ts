import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { main } from '../../src/cli/kpc-apply/main.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { resultOf } from '../support/printed-json.ts';

const ipvs = 'fixtures/dual-stack/expected-ipvs';
const iptables = 'fixtures/dual-stack/expected-iptables';
const other = 'fixtures/loadbalancer-source-ranges/expected-ipvs';
const dns = 'fixtures/dns/expected-ipvs';
const scratch = mkdtempSync(join(tmpdir(), 'kpc-apply-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Lets a process run on a node, of a name and its users. */
function runProcess(files: Map<string, string>, pid: number, name: string, real: number, effective = real): void {
  files.set(`/proc/${pid}/comm`, `${name}\n`);
  files.set(`/proc/${pid}/status`, `Name:\t${name}\nUid:\t${real}\t${effective}\t${effective}\t${effective}\n`);
}

describe('plan', () => {
  test('shows what would change, by Service, and ends with status 1', async () => {
    const { host, commands } = createFakeNode();
    const { status, out } = await callApply(host, 'plan', ipvs);
    expect(status).toBe(1);
    expect(out).toMatch(/^this node\n {2}~ sysctl net\.ipv4\.ip_forward: 0 → 1\n/);
    expect(out).toMatch(/\n {2}\+ virtual server TCP \d+\.\d+\.\d+\.\d+:\d+ with \d+ real servers?\n/);
    expect(out).toMatch(/\n {2}\+ 34 sets\n/);
    expect(out).toMatch(
      /\nPlan: 34 sets, .* 1 link and \d+ addresses to add, 4 sysctls and \d+ chains to change, nothing to remove\n$/,
    );
    expect((await callApply(host, 'plan', ipvs, '--all')).out).toMatch(/\n {2}\+ set KUBE-LOOP-BACK\n/);
    expect(commands.filter(({ tool, stdin }) => stdin !== undefined && tool !== 'perl')).toEqual([]);
  });

  test('gives programs the same as JSON, and status 0 where nothing would change', async () => {
    const { host } = createFakeNode();
    const before = resultOf((await callApply(host, 'plan', ipvs, '--output', 'json')).out);
    expect(before.changes).toContainEqual(
      expect.objectContaining({ action: 'add', object: 'link', text: 'kube-ipvs0' }),
    );
    await callApply(host, 'apply', ipvs);
    const { status, out } = await callApply(host, 'plan', ipvs, '--output', 'json');
    expect(status).toBe(0);
    expect(resultOf(out)).toEqual({
      changes: [],
      servicePorts: [],
      conflicts: [],
      foreignVirtualServers: [],
      draining: [],
    });
  });

  test('counts the endpoints of a Service port, and those that the node uses', async () => {
    const { host } = createFakeNode();
    const bundle = 'fixtures/quickstart/expected-iptables';
    const counts = { endpoints: 3, used: 2 };
    expect(resultOf((await callApply(host, 'plan', bundle, '--output', 'json')).out).servicePorts).toEqual([
      { servicePort: 'default/nginx', addresses: ['10.96.0.80:80'], ...counts },
    ]);
    const { out } = await callApply(host, 'plan', bundle);
    expect(/^default\/nginx 10\.96\.0\.80:80 \D*(\d+)\D+(\d+)\D*$/m.exec(out)?.slice(1).map(Number)).toEqual(
      Object.values(counts),
    );
  });

  test('shows what is in the way, and that --adopt settles it', async () => {
    const { host } = createFakeNode();
    const [line = ''] = readFileSync(`${ipvs}/ipvsadm.restore`, 'utf8').split('\n');
    await host.run({ tool: 'ip', args: ['-batch', '-'], stdin: readFileSync(`${ipvs}/ip.batch`, 'utf8') });
    await host.run({ tool: 'ipvsadm', args: ['-R'], stdin: `${line.replace(/-s \w+/, '-s wlc')}\n` });
    expect((await callApply(host, 'plan', ipvs)).out).toMatch(
      /! apply would refuse: virtual server .* exists already, but kpc-apply did not make it: --adopt takes it over/,
    );
    const refused = await callApply(host, 'apply', ipvs);
    expect(refused.status).toBe(3);
    expect(refused.err).toMatch(
      /these exist already, but kpc-apply did not make them: .*help: if kube-proxy left them, apply with --adopt/s,
    );
    expect((await callApply(host, 'apply', ipvs, '--adopt')).status).toBe(0);
    expect((await callApply(host, 'verify', ipvs)).status).toBe(0);
  });
});

test('verify says what drifted', async () => {
  const { host } = createFakeNode();
  await callApply(host, 'apply', ipvs);
  const extra = '-a -t 10.96.32.60:443 -r 10.9.9.9:443 -m -w 1\n';
  await host.run({ tool: 'ipvsadm', args: ['-R'], stdin: extra });
  const { status, out } = await callApply(host, 'verify', ipvs);
  expect(status).toBe(1);
  expect(out).toMatch(/\nDrift: 1 virtual server changed; kpc-apply apply repairs it\n$/);
});

test('verify says what repairs what a kube-proxy left', async () => {
  const { host } = createFakeNode();
  await callApply(host, 'apply', ipvs);
  await host.run({ tool: 'iptables-restore', args: ['--noflush'], stdin: '*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n' });
  const { status, out } = await callApply(host, 'verify', ipvs, '--state-dir', '/var/lib/other');
  expect(status).toBe(1);
  expect(out).toMatch(/\nDrift: 1 chain changed; kpc-apply apply --adopt repairs it\n$/);
});

describe('apply', () => {
  test('a second one changes nothing, writes a note of that alone and runs no tool that could', async () => {
    const { host, commands, files, dump } = createFakeNode();
    expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
    const [there, kept] = [dump(), JSON.stringify([...files])];
    commands.length = 0;
    const { status, err } = await callApply(host, 'apply', ipvs);
    expect([status, err]).toEqual([0, 'nothing to do: the node matches the bundle\n']);
    expect(commands.map(({ tool, args }) => [tool, ...args].join(' ')).toSorted()).toEqual([
      'ip -j -d addr',
      'ip6tables-save',
      'ip6tables-save --version',
      'ipset list -t',
      'ipset save',
      'iptables-save',
      'iptables-save --version',
      'ipvsadm -Sn',
    ]);
    expect(files.delete('/var/lib/kpc/last-command.json')).toBe(true);
    expect([dump(), JSON.stringify([...files])]).toEqual([there, kept]);
  });

  test.each([
    [ipvs, iptables],
    [iptables, ipvs],
    [ipvs, other],
    [other, iptables],
  ])('%s and then %s is what the second alone is', async (first, second) => {
    const [both, alone] = [createFakeNode(), createFakeNode()];
    await callApply(both.host, 'apply', first);
    expect((await callApply(both.host, 'apply', second)).status).toBe(0);
    expect((await callApply(alone.host, 'apply', second)).status).toBe(0);
    // Sysctls stay as they are: other programs may have come to need them.
    const withoutSysctls = (text: string) => text.slice(0, text.search(/(?:\/proc\/sys\/)?net[./]/));
    expect(withoutSysctls(both.dump())).toBe(withoutSysctls(alone.dump()));
  });

  test('takes things in their order: sets, rules, virtual servers, addresses; and the other way when they go', async () => {
    const { host, commands } = createFakeNode();
    const changes = () =>
      commands
        .splice(0)
        .filter(({ stdin }) => stdin !== undefined)
        .map(({ tool }) => tool);
    await callApply(host, 'apply', ipvs);
    expect(changes()).toEqual(['ipset', 'iptables-restore', 'ip6tables-restore', 'ipvsadm', 'ip']);
    await callApply(host, 'cleanup');
    expect(changes()).toEqual(['ip', 'ipvsadm', 'iptables-restore', 'ip6tables-restore', 'ipset']);
  });

  test('from one mode to the other, the old rules go when what comes after them is there, and addresses are guarded', async () => {
    const { host, commands } = createFakeNode();
    const changes = () =>
      commands
        .splice(0)
        .filter(({ stdin }) => stdin !== undefined)
        .map(({ tool }) => tool);
    await callApply(host, 'apply', iptables);
    changes();
    await callApply(host, 'apply', ipvs);
    const rules = ['iptables-restore', 'ip6tables-restore'];
    expect(changes()).toEqual(['ipset', ...rules, 'ipvsadm', 'ip', ...rules]);
    await callApply(host, 'apply', iptables);
    expect(changes()).toEqual([...rules, 'ipset', 'ip', 'ipvsadm', ...rules, 'ipset']);
  });

  test('--dry-run prints what each tool would read, and changes nothing', async () => {
    const { host, dump, files } = createFakeNode();
    const [there, kept] = [dump(), JSON.stringify([...files])];
    const { status, out } = await callApply(host, 'apply', ipvs, '--dry-run');
    expect(status).toBe(0);
    expect(out).toContain(`# ipvsadm -R\n${readFileSync(`${ipvs}/ipvsadm.restore`, 'utf8')}`);
    expect(out).toContain(`# ip -batch -\n${readFileSync(`${ipvs}/ip.batch`, 'utf8')}`);
    expect([dump(), JSON.stringify([...files])]).toEqual([there, kept]);
  });

  test('puts sysctls back too where it fails', async () => {
    const { host, dump } = createFakeNode();
    const there = dump();
    const failing: Host = {
      ...host,
      run: async (command) => (command.args[0] === '-R' ? { kind: 'missing' } : host.run(command)),
    };
    expect((await callApply(failing, 'apply', ipvs)).status).toBe(3);
    expect(dump()).toBe(there);
  });

  test('quotes the line that a tool complains of', async () => {
    const { host } = createFakeNode();
    const failing: Host = {
      ...host,
      run: async (command) =>
        command.tool === 'iptables-restore' && command.stdin !== undefined
          ? { kind: 'ended', status: 2, stdout: '', stderr: 'iptables-restore: line 3 failed\n' }
          : host.run(command),
    };
    const { err } = await callApply(failing, 'apply', ipvs);
    expect(err).toMatch(
      /"iptables-restore --noflush --wait 10" exited with status 2\niptables-restore: line 3 failed\nline 3: :KUBE-/,
    );
  });

  test('says that it failed and put everything back where its journal cannot be ended, and rollback ends it', async () => {
    const { host, dump, files } = createFakeNode();
    const there = dump();
    const failing: Host = {
      ...host,
      run: async (command) =>
        command.args[0] === '-R' ? { kind: 'ended', status: 1, stdout: '', stderr: 'no memory' } : host.run(command),
      remove: (path) =>
        path.endsWith('/journal.json') ? Promise.reject(new Error('EROFS: read-only file system')) : host.remove(path),
    };
    const { status, err } = await callApply(failing, 'apply', ipvs);
    expect([status, dump()]).toEqual([3, there]);
    expect(err).toMatch(/warning: everything is rolled back, but .*\/journal\.json cannot be closed: EROFS/);
    expect(err).toMatch(/error: "ipvsadm -R" exited with status 1\nno memory \[tool-failed\]/);
    expect(err).toMatch(/The node is as it was before\.\n$/);
    expect((await callApply(host, 'rollback')).status).toBe(0);
    expect(files.has('/var/lib/kpc/journal.json')).toBe(false);
  });

  test('is done where it cannot look for stale flows afterwards', async () => {
    const { host, files } = createFakeNode();
    const failing: Host = {
      ...host,
      run: async (command) => {
        if (command.args[0] !== '-L' || command.tool !== 'conntrack') return host.run(command);
        throw Object.assign(new Error('spawn conntrack EAGAIN'), { code: 'EAGAIN', syscall: 'spawn conntrack' });
      },
    };
    const { status, err } = await callApply(failing, 'apply', dns);
    expect(status).toBe(0);
    expect(err).toMatch(/warning: UDP clients may keep sending .*: spawn conntrack EAGAIN\ndone: /);
    expect(files.has('/var/lib/kpc/record.json')).toBe(true);
    expect((await callApply(host, 'verify', dns)).status).toBe(0);
  });

  test('says what is left where putting back fails too, and rollback does it later', async () => {
    const { host, dump } = createFakeNode();
    await callApply(host, 'apply', ipvs);
    const there = dump();
    let worked = false;
    const failing: Host = {
      ...host,
      run: async (command) => {
        if (command.args[0] !== '-R') return host.run(command);
        if (worked) return { kind: 'ended', status: 1, stdout: '', stderr: 'no memory' };
        worked = true;
        return host.run(command);
      },
    };
    const { status, err } = await callApply(failing, 'apply', other);
    expect(status).toBe(4);
    expect(err).toMatch(/NOT everything could be rolled back\. Left to do:\n.*\n {2}- virtual server /);
    expect((await callApply(host, 'rollback')).status).toBe(0);
    expect(dump()).toBe(there);
  });

  test('names what could not be put back one by one', async () => {
    const { host } = createFakeNode();
    await callApply(host, 'apply', ipvs);
    let failed = false;
    const failing: Host = {
      ...host,
      run: async (command) => {
        failed ||= command.args[0] === '-R';
        const fails = failed && (command.args[0] === '-R' || command.args[0] === 'restore');
        return fails ? { kind: 'ended', status: 1, stdout: '', stderr: 'no memory' } : host.run(command);
      },
    };
    const { status, err } = await callApply(failing, 'apply', other);
    expect(status).toBe(4);
    expect(err.match(/^ {2}- set entry KUBE-\S+ \S+$/gm)?.length, err).toBeGreaterThan(8);
  });

  test('refuses a node that is not fit, and goes on with --force', async () => {
    const { host, files } = createFakeNode();
    runProcess(files, 77, 'kube-proxy', 0);
    const { status, err } = await callApply(host, 'apply', ipvs);
    expect(status).toBe(3);
    expect(err).toMatch(/kube-proxy is running \(process 77\).*\[not-ready\]\n {2}help: stop it first/);
    expect((await callApply(host, 'apply', ipvs, '--force')).status).toBe(0);
  });
});

test('shows a user who watches how far it is, and says the rest on lines of their own', async () => {
  const { host } = createFakeNode();
  const watchApply = async (folder: string) => {
    const shown: string[] = [];
    await main(['apply', folder], {
      host,
      terminal: {
        out: async () => {},
        err: async (text) => void shown.push(text),
        status: async (text) => void shown.push(`[${text}]`),
        readStdin: async () => '',
        colour: { out: false, err: false },
        interactive: true,
      },
    });
    return shown;
  };
  const first = await watchApply(ipvs);
  expect(first[0]).toBe('[reading the node]');
  expect(first.filter((line) => /^\[\d+\/\d+ ipset: \d+ lines\]$/.test(line))).toHaveLength(1);
  expect(first.slice(-3)).toEqual(['[reading everything back]', '[]', expect.stringMatching(/^done: /)]);
  expect(await watchApply(ipvs)).toEqual(['[reading the node]', '[]', 'nothing to do: the node matches the bundle\n']);
});

test("what another program had made just as it is wanted stays that program's, also where an apply is killed", async () => {
  const { host, dump } = createFakeNode();
  const theirs = readFileSync(`${ipvs}/ipvsadm.restore`, 'utf8').split('\n').slice(0, 3).join('\n');
  await host.run({ tool: 'ipvsadm', args: ['-R'], stdin: `${theirs}\n` });
  const there = dump();
  const dying: Host = {
    ...host,
    run: async (command) => {
      if (command.tool === 'ip' && command.stdin !== undefined) throw new Error('killed');
      return host.run(command);
    },
    // What putting back would do first.
    remove: () => Promise.reject(new Error('killed')),
  };
  await callApply(dying, 'apply', ipvs).catch(() => undefined);
  expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
  expect((await callApply(host, 'cleanup')).status).toBe(0);
  const withoutSysctls = (text: string) => text.slice(0, text.search(/(?:\/proc\/sys\/)?net[./]/));
  expect(withoutSysctls(dump())).toBe(withoutSysctls(there));
});

describe('a bundle that is not to be trusted', () => {
  const spoil = (name: string, change: (folder: string) => void) => {
    const folder = join(scratch, name);
    cpSync(ipvs, folder, { recursive: true });
    change(folder);
    return folder;
  };
  const tamper = (folder: string) => {
    const file = join(folder, 'ipvsadm.restore');
    writeFileSync(file, readFileSync(file, 'utf8').replace('-s rr', '-s sh'));
  };
  const editManifest = (folder: string, change: (manifest: Record<string, Record<string, unknown>>) => void) => {
    const file = join(folder, 'manifest.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8'));
    change(manifest);
    writeFileSync(file, JSON.stringify(manifest));
  };
  const sneak = (folder: string, file: string, line: string) => {
    writeFileSync(join(folder, file), line);
    editManifest(folder, ({ files = {} }) => {
      files[file] = createHash('sha256').update(line).digest('hex');
    });
  };

  test.each(['apply', 'plan', 'verify', 'doctor'])('%s refuses it with status 2', async (command) => {
    const { host, dump, files } = createFakeNode();
    const [there, kept] = [dump(), JSON.stringify([...files])];
    const { status, err } = await callApply(host, command, spoil(`tampered-${command}`, tamper));
    expect(status).toBe(2);
    expect(err).toMatch(
      /ipvsadm\.restore has changed since it was compiled.*\[bad-bundle\]\n {2}help: compile it again/s,
    );
    expect([dump(), JSON.stringify([...files])]).toEqual([there, kept]);
  });

  test.each(['apply', 'plan', 'verify', 'doctor'])('%s says what is wrong with a manifest', async (command) => {
    const folder = spoil(`misshapen-${command}`, (copy) =>
      editManifest(copy, (manifest) => Object.assign(manifest, { settings: {}, tools: null, node: null })),
    );
    const { status, err } = await callApply(createFakeNode().host, command, folder);
    expect(status).toBe(2);
    expect(err).toMatch(
      /manifest\.json:\d+:\d+: node must be an object\n[^]*manifest\.json:\d+:\d+: tools must be an object[^]*\[bad-bundle\]/,
    );
  });

  test('timeouts of IPVS are set in whole seconds', async () => {
    const folder = spoil('half-seconds', (copy) =>
      editManifest(copy, (manifest) => Object.assign(manifest, { ipvsTimeouts: { tcp: 90.5, tcpFin: 0.5, udp: 0 } })),
    );
    const { host, commands } = createFakeNode();
    expect((await callApply(host, 'apply', folder)).status).toBe(0);
    expect(commands.filter(({ args }) => args[0] === '--set').map(({ args }) => args)).toEqual([
      ['--set', '90', '0', '0'],
    ]);
    expect((await callApply(host, 'verify', folder)).status).toBe(0);
  });

  test('nothing but the network can be set, whatever the checksums say', async () => {
    const folder = spoil('sneaky', (copy) => sneak(copy, 'sysctl.conf', 'kernel.core_pattern = |/tmp/evil\n'));
    const { status, err } = await callApply(createFakeNode().host, 'apply', folder);
    expect(status).toBe(2);
    expect(err).toMatch(/sysctl\.conf:\d+: not what kpc writes: "kernel\.core_pattern = /);
  });

  test('a sysctl is set to a number, and to nothing that a terminal would act on', async () => {
    const folder = spoil('painted', (copy) => sneak(copy, 'sysctl.conf', 'net.ipv4.ip_forward = \u001b[2J\n'));
    const { status, err } = await callApply(createFakeNode().host, 'apply', folder);
    expect(status).toBe(2);
    expect(err).toContain('not what kpc writes: "net.ipv4.ip_forward = \\u001b[2J"');
  });

  test('no module is loaded but those of Service rules, whatever the checksums say', async () => {
    const folder = spoil('loading', (copy) => sneak(copy, 'modules.conf', 'ip_vs\nusb_storage\nxt_comment\nipip\n'));
    const { host, commands } = createFakeNode();
    const { status, err } = await callApply(host, 'apply', folder);
    expect(status).toBe(2);
    expect(err).toContain('modules.conf:2: not what kpc writes: "usb_storage"');
    expect(err.match(/modules\.conf:\d+: not/g)).toEqual(['modules.conf:2: not']);
    expect(commands).toEqual([]);
  });
});

describe('rollback', () => {
  test('brings back what was there before the last apply; twice, what was rolled back', async () => {
    const { host, dump } = createFakeNode();
    await callApply(host, 'apply', ipvs);
    const first = dump();
    await callApply(host, 'apply', other);
    const second = dump();
    expect((await callApply(host, 'rollback')).status).toBe(0);
    expect(dump()).toBe(first);
    expect((await callApply(host, 'rollback')).status).toBe(0);
    expect(dump()).toBe(second);
  });

  test('says so where there is nothing to go back to, as after a boot', async () => {
    const { host, files } = createFakeNode();
    expect((await callApply(host, 'rollback')).err).toMatch(/\[nothing-to-roll-back\]/);
    await callApply(host, 'apply', ipvs);
    files.set('/proc/sys/kernel/random/boot_id', 'another\n');
    expect((await callApply(host, 'rollback')).status).toBe(2);
  });
});

describe('confirm', () => {
  test('keeps what was applied', async () => {
    const { host, files } = createFakeNode();
    const applying = callApply(host, 'apply', ipvs, '--confirm-timeout', '60s');
    while (!files.has('/var/lib/kpc/awaiting.json')) await new Promise((resolve) => setImmediate(resolve));
    expect((await callApply(host, 'confirm')).status).toBe(0);
    expect((await applying).status).toBe(0);
    expect((await callApply(host, 'verify', ipvs)).status).toBe(0);
  });

  test.each([3_600_000, -3_600_000])('has its time where the clock is set by %d ms meanwhile', async (by) => {
    const { host, setClock } = createFakeNode();
    const begun = host.uptime();
    let isSet = false;
    const moved: Host = {
      ...host,
      sleep: (milliseconds) => {
        if (!isSet) setClock(by);
        isSet = true;
        return host.sleep(milliseconds);
      },
    };
    expect((await callApply(moved, 'apply', ipvs, '--confirm-timeout', '60s')).status).toBe(3);
    expect(host.uptime() - begun).toBe(60_000);
  });

  test('reaches an apply in another PID namespace', async () => {
    const { host, files } = createFakeNode();
    const seeing = (pid: number, namespace: string): Host => ({
      ...host,
      pid,
      readLink: async (path) => (path === '/proc/self/ns/pid' ? namespace : host.readLink(path)),
    });
    const applying = callApply(seeing(7, 'pid:[2]'), 'apply', ipvs, '--confirm-timeout', '60s');
    while (!files.has('/var/lib/kpc/awaiting.json')) await new Promise((resolve) => setImmediate(resolve));
    files.set('/proc/7/stat', '7 (other) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0');
    expect((await callApply(seeing(100, 'pid:[1]'), 'confirm')).status).toBe(0);
    expect((await applying).status).toBe(0);
  });

  test('that the question has been lost is no yes', async () => {
    const { host, dump, files } = createFakeNode();
    const there = dump();
    const applying = callApply(host, 'apply', ipvs, '--confirm-timeout', '60s');
    while (!files.delete('/var/lib/kpc/awaiting.json')) await new Promise((resolve) => setImmediate(resolve));
    expect((await applying).status).toBe(3);
    expect(dump()).toBe(there);
  });

  test('too late, finds everything put back', async () => {
    const { host, dump } = createFakeNode();
    const there = dump();
    const { status, err } = await callApply(host, 'apply', ipvs, '--confirm-timeout', '60s');
    expect([status, dump()]).toEqual([3, there]);
    expect(err).toMatch(/no confirmation within 60 s \[not-confirmed\]/);
    expect((await callApply(host, 'confirm')).err).toMatch(/\[nothing-to-confirm\]/);
  });
});

describe('a damaged state folder', () => {
  const notJson = ['', '{', 'null', '[]', '{}'];
  const previous = async (): Promise<Record<string, Record<string, unknown>>> => {
    const { host, files } = createFakeNode();
    await callApply(host, 'apply', ipvs);
    return JSON.parse(files.get('/var/lib/kpc/state-1.json') ?? '');
  };

  test.each(
    notJson.flatMap((text) => ['apply', 'plan', 'cleanup', 'rollback', 'dump'].map((command) => [text, command])),
  )('with the journal %j: %s says so and changes nothing', async (text, command) => {
    const { host, dump, files } = createFakeNode();
    files.set('/var/lib/kpc/journal.json', text);
    files.set('/var/lib/kpc/record.json', text);
    const there = dump();
    const args = { apply: [ipvs], plan: [ipvs], dump: ['-o', join(scratch, 'damaged')] }[command] ?? [];
    const { status, err } = await callApply(host, command, ...args);
    expect([status, dump()]).toEqual([3, there]);
    expect(err).toMatch(
      /^error: \/var\/lib\/kpc\/(journal|record)\.json is damaged: .+ \[bad-state-folder\]\n {2}help: remove the (?:file|record)\b/,
    );
  });

  test('says which field of a snapshot is wrong', async () => {
    const { host, files } = createFakeNode();
    const snapshot = await previous();
    files.set(
      '/var/lib/kpc/journal.json',
      JSON.stringify({ ...snapshot, reading: { ...snapshot['reading'], ipv6: 6 } }),
    );
    expect((await callApply(host, 'rollback')).err).toContain('is damaged: reading.ipv6 must be a string [');
  });

  test.each([...notJson, '{"pid":"x"}', '{"pid":1.5,"started":"1","bootId":"b"}'])(
    'with the question %j: confirm says so',
    async (text) => {
      const { host, files } = createFakeNode();
      files.set('/var/lib/kpc/awaiting.json', text);
      const { status, err } = await callApply(host, 'confirm');
      expect(status).toBe(3);
      expect(err).toMatch(
        /awaiting\.json is damaged: .+ \[bad-state-folder\]\n {2}help: remove the file and apply again/,
      );
    },
  );

  test('a claim of the lock that is none holds no apply up', async () => {
    const { host, files } = createFakeNode();
    for (const text of [...notJson, '{"pid":{}}']) files.set(`/var/lib/kpc/lock/${text.length}`, text);
    expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
  });
});

describe('cleanup', () => {
  test('leaves what others made, and a kube-proxy, unless --adopt says otherwise', async () => {
    const { host, dump } = createFakeNode();
    await host.run({ tool: 'ipvsadm', args: ['-R'], stdin: '-A -t 100.64.9.1:80 -s rr\n' });
    const theirs = dump();
    await host.run({ tool: 'ipset', args: ['restore'], stdin: readFileSync(`${ipvs}/ipset.restore`, 'utf8') });
    await host.run({ tool: 'ipvsadm', args: ['-R'], stdin: readFileSync(`${ipvs}/ipvsadm.restore`, 'utf8') });
    await host.run({ tool: 'ip', args: ['-batch', '-'], stdin: readFileSync(`${ipvs}/ip.batch`, 'utf8') });
    const [, , count = ''] = /(-A (-t \S+))/.exec(readFileSync(`${ipvs}/ipvsadm.restore`, 'utf8')) ?? [];
    const excluded = `${count.slice(3, count.lastIndexOf(':'))}/32`;
    expect((await callApply(host, 'cleanup', '--adopt', '--ipvs-exclude-cidrs', excluded)).status).toBe(0);
    expect(dump()).toContain(`-A ${count} `);
    expect(dump()).not.toContain('KUBE-');
    expect(dump()).toContain('-A -t 100.64.9.1:80 -s rr');
    await host.run({ tool: 'ipvsadm', args: ['-R'], stdin: `-D ${count}\n` });
    expect(dump().replace(/^-A -t (?!100\.64).*\n/gm, '')).toBe(theirs);
  });
});

describe('dump', () => {
  test('writes a bundle that plan finds nothing to change for', async () => {
    const { host } = createFakeNode();
    await callApply(host, 'apply', ipvs);
    const folder = join(scratch, 'dump');
    expect((await callApply(host, 'dump', '-o', folder)).err).toMatch(
      /^\d+ virtual servers, \d+ sets, \d+ chains and \d+ addresses, written to /,
    );
    const { status, out } = await callApply(host, 'plan', folder);
    expect([status, out]).toEqual([0, 'Plan: nothing to change\n']);
    expect(readFileSync(join(folder, 'ipvsadm.restore'), 'utf8')).toBe(readFileSync(`${ipvs}/ipvsadm.restore`, 'utf8'));
  });
});

describe('doctor', () => {
  test('finds a fit node fit', async () => {
    const { status, out } = await callApply(createFakeNode().host, 'doctor', ipvs);
    expect(out).not.toMatch(/^error/m);
    expect(status).toBe(0);
  });

  test('says what is missing and what to do about it', async () => {
    const { host, files } = createFakeNode();
    files.set('/proc/modules', '');
    files.set(
      '/lib/modules/6.1.0/modules.dep',
      'kernel/net/ip_vs_rr.ko.zst: kernel/net/ip_vs.ko.zst\nkernel/net/ip_vs.ko.zst:\n',
    );
    files.set('/lib/modules/6.1.0/modules.builtin', 'kernel/net/nf_conntrack.ko\n');
    files.set('/proc/self/status', 'CapEff:\t0000000000000000\n');
    const withoutIpset: Host = {
      ...host,
      run: async (command) =>
        command.tool === 'ipset'
          ? { kind: 'missing' }
          : command.tool === 'ipvsadm'
            ? { kind: 'ended', status: 0, stdout: 'ipvsadm v1.26 2008/5/15\n', stderr: '' }
            : host.run(command),
    };
    const { status, out } = await callApply(withoutIpset, 'doctor', ipvs);
    expect(status).toBe(1);
    expect(out).toMatch(
      /error {3}not allowed to change the network: \/proc\/self\/status shows no CAP_NET_ADMIN\n {8}run it as root; a container .*\n/,
    );
    expect(out).toMatch(/error {3}ipset is missing\n {8}install the package ipset\n/);
    expect(out).toMatch(/error {3}ipvsadm is 1\.26, but at least 1\.\d+ is needed\n {8}upgrade the package ipvsadm\n/);
    expect(out).toMatch(/ok {6}ip_vs_rr can be loaded\n/);
    expect(out).toMatch(/ok {6}nf_conntrack is in the kernel\n/);
    expect(out).toMatch(/error {3}.*xt_comment.* are missing/);
  });

  test('a kube-proxy in another network is no matter, and a bundle for another node is one', async () => {
    const { host, files } = createFakeNode();
    runProcess(files, 77, 'kube-proxy', 0);
    files.set('/proc/77/ns/net', 'net:[2]');
    files.set('/proc/self/ns/net', 'net:[1]');
    const { out } = await callApply(host, 'doctor', ipvs);
    expect(out).toContain('kube-proxy is not running in this network namespace');
    expect(out).toMatch(/warning the bundle was compiled for a node with .*, which this node does not have/);
    files.set('/proc/77/ns/net', 'net:[1]');
    expect((await callApply(host, 'doctor', ipvs)).status).toBe(1);
  });

  test("another user's process that only has a kube-proxy's name stops nothing", async () => {
    const { host, files } = createFakeNode();
    runProcess(files, 77, 'kube-proxy', 1000);
    runProcess(files, 78, 'kube-proxy', 1000, 0);
    expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
    expect((await callApply(host, 'doctor', ipvs)).out).toContain(
      'kube-proxy is not running in this network namespace',
    );
    runProcess(files, 79, 'kube-proxy', 0);
    expect((await callApply(host, 'doctor', ipvs)).out).toContain('kube-proxy is running (process 79)');
  });

  test('opens no more than a few files at once, however many processes there are', async () => {
    const { host, files } = createFakeNode();
    for (let pid = 1000; pid < 3000; pid++) runProcess(files, pid, 'sleep', 0);
    let open = 0;
    let most = 0;
    const counting: Host = {
      ...host,
      readFile: async (path) => {
        most = Math.max(most, ++open);
        await new Promise((resolve) => setImmediate(resolve));
        open--;
        return host.readFile(path);
      },
    };
    expect((await callApply(counting, 'apply', ipvs)).status).toBe(0);
    expect(most).toBeLessThan(64);
  });

  test('finds rules in the other variant of iptables', async () => {
    const { host } = createFakeNode();
    const stray: Host = {
      ...host,
      run: async (command) =>
        command.tool === 'iptables-legacy-save'
          ? { kind: 'ended', status: 0, stdout: '*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n', stderr: '' }
          : command.args[0] === '--version'
            ? { kind: 'ended', status: 0, stdout: `${command.tool} v1.8.9 (nf_tables)\n`, stderr: '' }
            : host.run(command),
    };
    expect((await callApply(stray, 'doctor')).out).toMatch(
      /warning .*the legacy variant also holds 1 chain of kube-proxy, which packets still reach/,
    );
  });
});

test('who may not read the node is told so, without a stack trace', async () => {
  const { host } = createFakeNode();
  const refusing: Host = {
    ...host,
    readFile: async (path) => {
      if (!path.endsWith('/hashsize')) return host.readFile(path);
      throw Object.assign(new Error(`EACCES: permission denied, open '${path}'`), { code: 'EACCES', syscall: 'open' });
    },
  };
  const { status, err } = await callApply(refusing, 'plan', ipvs);
  expect(status).toBe(3);
  expect(err).toMatch(/^error: EACCES: permission denied.* \[system-error\]\n {2}help: run it as root\n$/);
});

describe('what was not foreseen', () => {
  /** A node of which one file cannot even be asked for. */
  const broken = ({ host }: FakeNode): Host => ({
    ...host,
    readFile: async (path) => {
      if (path === '/proc/net/ip_vs') throw new TypeError('x is not a function\nat somewhere');
      return host.readFile(path);
    },
  });
  const said =
    /^error: TypeError: x is not a function \[internal-error\]\n {2}help: this is a bug in kpc-apply: report it.*\n/;

  test.each([['apply', ipvs], ['plan', ipvs], ['verify', ipvs], ['cleanup'], ['dump', '-o', join(scratch, 'never')]])(
    'ends %s with a line to report, and status 3 where nothing was changed',
    async (...args) => {
      const node = createFakeNode();
      const { status, err } = await callApply(broken(node), ...args);
      expect(status).toBe(3);
      expect(err).toMatch(said);
      expect(err.split('\n')).toHaveLength(3);
    },
  );

  test('ends with status 4 where something may have been changed', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', ipvs);
    const journal = node.files.get('/var/lib/kpc/state-1.json') ?? '';
    node.files.set('/var/lib/kpc/journal.json', journal);
    const { status, err } = await callApply(broken(node), 'apply', other);
    expect(status).toBe(4);
    expect(err).toMatch(said);
    expect(err).toMatch(/The state of the node is NOT known: check it with "kpc-apply verify"/);
  });

  test('in the middle of an apply, everything is put back', async () => {
    const node = createFakeNode();
    const there = node.dump();
    let seen = 0;
    const failing: Host = {
      ...node.host,
      run: async (command) => {
        if (command.args[0] === '-R' && seen++ === 0) throw new TypeError('x is not a function');
        return node.host.run(command);
      },
    };
    const { status, err } = await callApply(failing, 'apply', ipvs);
    expect([status, node.dump()]).toEqual([3, there]);
    expect(err).toMatch(/\[internal-error\][^]*\nThe node is as it was before\.\n$/);
  });

  test('watch says so and tries again', async () => {
    const { host } = createFakeNode();
    const begun = host.uptime();
    const stumbling: Host = {
      ...host,
      readFile: async (path) => {
        if (path === '/proc/net/ip_vs' && host.uptime() < begun + 10_000) throw new TypeError('x is not a function');
        return host.readFile(path);
      },
      sleep: async (milliseconds) => {
        await host.sleep(milliseconds);
        if (host.uptime() > begun + 40_000) process.emit('SIGTERM');
      },
    };
    const { status, err } = await callApply(stumbling, 'watch', ipvs);
    expect(status).toBe(0);
    expect(err).toMatch(/^error: TypeError: x is not a function \[internal-error\]\n.*\ndone: .*\n$/);
  });

  test('a terminal that has hung up keeps no apply from its end', async () => {
    const { host } = createFakeNode();
    const gone = async () => {
      throw Object.assign(new Error('write EIO'), { code: 'EIO', syscall: 'write' });
    };
    for (const interactive of [false, true]) {
      const status = await main(['apply', interactive ? other : ipvs], {
        host,
        terminal: {
          out: gone,
          err: gone,
          status: gone,
          readStdin: async () => '',
          colour: { out: false, err: false },
          interactive,
        },
      });
      expect(status).toBe(0);
    }
    expect((await callApply(host, 'verify', other)).status).toBe(0);
  });

  test('help that cannot be printed is said to be so', async () => {
    const full = async () => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' });
    };
    let err = '';
    const terminal = {
      out: full,
      err: async (text: string) => void (err += text),
      status: full,
      readStdin: async () => '',
      colour: { out: false, err: false },
      interactive: false,
    };
    expect(await main(['--help'], { host: createFakeNode().host, terminal })).toBe(3);
    expect(err).toMatch(/ENOSPC.* \[system-error\]/);
  });
});

test.each([
  [['apply'], /missing required argument/],
  [['apply', ipvs, '--drain-timeout', 'soon'], /help: write a duration like 30s/],
  [['apply', ipvs, '--ipvs-exclude-cidrs', '10.0.0.0'], /help: write CIDRs like/],
  [['frobnicate'], /unknown command/],
])('%j is a usage error', async (args, message) => {
  const { status, err } = await callApply(createFakeNode().host, ...args);
  expect(status).toBe(2);
  expect(err).toMatch(message);
});
