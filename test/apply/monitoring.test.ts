import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, test } from 'vitest';
import { formatLogRecord } from '../../src/cli/kpc-apply/environment.ts';
import { createPorts } from '../../src/apply/monitor/serve-ports.ts';
import { Metrics } from '../../src/apply/monitor/metrics.ts';
import { answerHealth, createNotifier } from '../../src/apply/monitor/watch-monitor.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const bundle = 'fixtures/dual-stack/expected-ipvs';
const scratch = mkdtempSync(join(tmpdir(), 'kpc-monitoring-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const port = 40_000 + (process.pid % 20_000);
const file = join(scratch, 'kpc.prom');

/** Runs a watch for some seconds of its own clock, and does something at some of them. */
async function watchFor(
  node: FakeNode,
  seconds: number,
  options: readonly string[],
  events: Readonly<Record<number, () => unknown>> = {},
): Promise<string> {
  const begun = node.host.uptime();
  const due = new Map(Object.entries(events));
  const sleep: Host['sleep'] = async (milliseconds) => {
    await node.host.sleep(milliseconds);
    const elapsed = (node.host.uptime() - begun) / 1000;
    for (const [time, event] of due) {
      if (Number(time) > elapsed) continue;
      due.delete(time);
      await event();
    }
    if (elapsed >= seconds) process.emit('SIGTERM');
  };
  return (await callApply({ ...node.host, sleep }, 'watch', bundle, '--sync-period', '10s', ...options)).err;
}

/** The value of a series in what was served. */
function valueOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

const removeServer = (node: FakeNode) => () =>
  node.host.run({ tool: 'ipvsadm', args: ['-R'], stdin: '-D -t 10.96.32.60:443\n' });

describe('metrics', () => {
  test('count rounds, and the drift that they find and repair', async () => {
    const node = createFakeNode();
    const texts: string[] = [];
    const look = () => texts.push(readFileSync(file, 'utf8'));
    await watchFor(node, 35, ['--metrics-file', file], { 5: look, 15: removeServer(node), 25: look });
    const [first = '', second = ''] = texts;
    expect(valueOf(first, 'kpc_apply_rounds_total{result="changed"}')).toBe(1);
    expect(valueOf(first, 'kpc_apply_healthy')).toBe(1);
    expect(valueOf(first, 'kpc_apply_rounds_total{result="stuck"}')).toBe(0);
    expect(valueOf(first, 'kpc_apply_drift_found_total{object="virtual server"}')).toBe(0);
    expect(valueOf(second, 'kpc_apply_rounds_total{result="changed"}')).toBe(2);
    for (const series of ['kpc_apply_drift_found_total', 'kpc_apply_drift_repaired_total']) {
      expect(valueOf(second, `${series}{object="virtual server"}`)).toBe(1);
    }
    expect(valueOf(second, 'kpc_apply_bundle_good')).toBe(1);
    expect(valueOf(second, 'kpc_apply_healthy')).toBe(1);
    expect(valueOf(second, 'kpc_apply_round_duration_seconds_count')).toBe(3);
    expect(valueOf(second, 'kpc_apply_round_duration_seconds_bucket{le="+Inf"}')).toBe(3);
    expect(valueOf(second, 'kpc_apply_last_success_timestamp_seconds')).toBeGreaterThan(1_700_000_000);
    expect(second).toMatch(/^kpc_apply_bundle_info\{digest="[\da-f]{64}",mode="ipvs",node="[^"]*"\} 1$/m);
  });

  test('count drift that cannot be repaired, and what failed', async () => {
    const node = createFakeNode();
    const { run } = node.host;
    let fails = false;
    const failing: FakeNode = {
      ...node,
      host: {
        ...node.host,
        run: async (command, patience) =>
          fails && command.tool === 'ipvsadm' && command.args[0] === '-R'
            ? { kind: 'ended', status: 1, stdout: '', stderr: 'no' }
            : run(command, patience),
      },
    };
    await watchFor(failing, 25, ['--metrics-file', file], {
      5: async () => {
        await removeServer(node)();
        fails = true;
      },
    });
    const text = readFileSync(file, 'utf8');
    expect(valueOf(text, 'kpc_apply_drift_found_total{object="virtual server"}')).toBe(2);
    expect(valueOf(text, 'kpc_apply_drift_repaired_total{object="virtual server"}')).toBe(0);
    expect(valueOf(text, 'kpc_apply_failures_total{code="tool-failed"}')).toBe(2);
    expect(valueOf(text, 'kpc_apply_tool_failures_total{tool="ipvsadm"}')).toBe(2);
  });

  test('count a tool that fails before anything is changed', async () => {
    const node = createFakeNode();
    const { run } = node.host;
    const failing: FakeNode = {
      ...node,
      host: {
        ...node.host,
        run: async (command, patience) =>
          command.tool === 'iptables-restore'
            ? { kind: 'ended', status: 1, stdout: '', stderr: 'no' }
            : run(command, patience),
      },
    };
    await watchFor(failing, 5, ['--metrics-file', file]);
    const text = readFileSync(file, 'utf8');
    expect(valueOf(text, 'kpc_apply_failures_total{code="not-ready"}')).toBe(1);
    expect(valueOf(text, 'kpc_apply_tool_failures_total{tool="iptables-restore"}')).toBe(1);
  });

  test('say that the bundle is damaged while the last good one is in its place', async () => {
    const node = createFakeNode();
    await watchFor(node, 5, ['--metrics-file', file, '--trust', join(scratch, 'missing.pub')]);
    const text = readFileSync(file, 'utf8');
    expect(valueOf(text, 'kpc_apply_bundle_good')).toBe(0);
    expect(valueOf(text, 'kpc_apply_healthy')).toBe(0);
    expect(valueOf(text, 'kpc_apply_failures_total{code="not-trusted"}')).toBe(1);
  });

  test('are in a file that all may read and that is never there by half', async () => {
    const before = process.umask(0o077);
    try {
      await watchFor(createFakeNode(), 2, ['--metrics-file', file]);
    } finally {
      process.umask(before);
    }
    expect(statSync(file).mode & 0o777).toBe(0o644);
    const said = await watchFor(createFakeNode(), 2, ['--metrics-file', '/nowhere/kpc.prom']);
    expect(said).toMatch(/warning: cannot write the metrics: ENOENT/);
    expect(said).toContain('done: ');
  });

  test('are not written over what is no file of metrics', async () => {
    const path = join(scratch, 'others.prom');
    writeFileSync(path, '# HELP node_time_seconds of another program\n');
    const { host } = createFakeNode();
    const reads = { readFile: (name: string) => (name === path ? realHost : host).readFile(name) };
    const said = await watchFor({ ...createFakeNode(), host: { ...host, ...reads } }, 2, ['--metrics-file', path]);
    expect(said).toMatch(/warning: cannot write the metrics: .*kpc-apply did not write the content of .*others\.prom/);
    expect(readFileSync(path, 'utf8')).toBe('# HELP node_time_seconds of another program\n');
  });

  test('escape what a label holds, and have help and a type', () => {
    const metrics = new Metrics();
    metrics.set('kpc_apply_bundle_info', 1, { node: 'a"b\\c\nd' });
    expect(metrics.format()).toMatch(
      /^# HELP kpc_apply_bundle_info .*\n# TYPE kpc_apply_bundle_info gauge\nkpc_apply_bundle_info\{node="a\\"b\\\\c\\nd"\} 1\n$/,
    );
  });
});

describe('ports', () => {
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  };

  test('serve metrics', async () => {
    const found: Awaited<ReturnType<typeof get>>[] = [];
    const ask = async () => found.push(await get('/metrics'), await get('/metrics?x=1'), await get('/healthz'));
    await watchFor(createFakeNode(), 4, ['--metrics', String(port)], { 2: ask });
    expect(found.map(({ status }) => status)).toEqual([200, 200, 404]);
    expect(found[0]?.type).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(found[0]?.text).toContain('kpc_apply_healthy 1\n');
    await expect(get('/metrics')).rejects.toThrow('fetch failed');
  });

  test('answer /healthz and /livez as kube-proxy does', async () => {
    const found: Awaited<ReturnType<typeof get>>[] = [];
    const ask = async () => found.push(await get('/healthz'), await get('/livez'), await get('/metrics'));
    await watchFor(createFakeNode(), 4, ['--healthz', `127.0.0.1:${port}`], { 2: ask });
    expect(found.map(({ status }) => status)).toEqual([200, 200, 404]);
    const [healthz, livez] = found;
    expect(healthz?.type).toBe('application/json');
    expect(Object.keys(JSON.parse(healthz?.text ?? ''))).toEqual([
      'lastUpdated',
      'currentTime',
      'nodeEligible',
      'healthy',
      'status',
    ]);
    expect(Object.keys(JSON.parse(livez?.text ?? ''))).not.toContain('nodeEligible');
  });

  test('are open while the first round goes on', async () => {
    const node = createFakeNode();
    const found: number[] = [];
    const run: Host['run'] = async (command, patience) => {
      if (found.length === 0) found.push((await get('/healthz')).status, (await get('/livez')).status);
      return node.host.run(command, patience);
    };
    await watchFor({ ...node, host: { ...node.host, run } }, 2, ['--healthz', `127.0.0.1:${port}`]);
    // Several tools run at once.
    expect(found.slice(0, 2)).toEqual([503, 200]);
  });

  test('are 503 before the first success, but a watch that has just begun is alive', async () => {
    const found: number[] = [];
    const ask = async () => void found.push((await get('/healthz')).status, (await get('/livez')).status);
    const broken = ['--trust', join(scratch, 'missing.pub'), '--healthz', `127.0.0.1:${port}`];
    await watchFor(createFakeNode(), 45, broken, { 2: ask, 40: ask });
    expect(found).toEqual([503, 200, 503, 503]);
  });

  test('that are taken are reported, and tried again each round', async () => {
    const other = createPorts();
    const host = '127.0.0.1';
    const taken = { use: { use: 'metrics', of: host, port }, addresses: [host], answer: () => undefined } as const;
    expect(await other.update([taken])).toEqual([]);
    const found: number[] = [];
    const said = await watchFor(createFakeNode(), 15, ['--metrics', String(port)], {
      5: () => other.close(),
      14: async () => found.push((await get('/metrics')).status),
    });
    expect(said).toMatch(/warning: cannot open metrics port \d+ of 127\.0\.0\.1: .*EADDRINUSE/);
    expect(said).toContain('done: ');
    expect(found).toEqual([200]);
  });

  test.each(['x', '70000', '0', '10.0.0.1', 'localhost:80', '::1:80'])('are not %s', async (address) => {
    const { status, err } = await callApply(createFakeNode().host, 'watch', bundle, '--metrics', address);
    expect(status).toBe(2);
    expect(err).toContain('address and a port');
  });
});

test('health has the fields of kube-proxy, and its times', () => {
  const health = { now: 90_000, lastSuccess: 60_000, families: ['ipv4', 'ipv6'] } as const;
  const time = (seconds: number) => new Date(seconds * 1000).toISOString();
  expect(JSON.parse(answerHealth(health, true, { nodeEligible: true }).body)).toEqual({
    lastUpdated: time(90),
    currentTime: time(90),
    nodeEligible: true,
    healthy: true,
    status: { IPv4: { lastUpdated: time(60), healthy: true }, IPv6: { lastUpdated: time(60), healthy: true } },
  });
  const unknown = { now: 90_000, lastSuccess: undefined, families: [] };
  expect(answerHealth(unknown, false)).toEqual({
    status: 503,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ lastUpdated: '0001-01-01T00:00:00Z', currentTime: time(90), healthy: false, status: {} }),
  });
});

describe('--log-format json', () => {
  test('takes nothing out of the text of a message', () => {
    const text = 'warning: odd [name]\n  help: none';
    const record = { time: new Date(0).toISOString(), level: 'info', message: text };
    expect(JSON.parse(formatLogRecord(text, undefined, 0))).toEqual(record);
    const details = { level: 'error', code: 'bad-bundle', help: 'compile it again' } as const;
    expect(JSON.parse(formatLogRecord(text, details, 0))).toEqual({ ...record, ...details });
  });

  test('writes one object a line', async () => {
    writeFileSync(join(scratch, 'manifest.json'), '{}');
    const good = await callApply(createFakeNode().host, 'apply', bundle, '--log-format', 'json');
    expect(
      good.err
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([{ time: '2023-11-14T22:13:20.000Z', level: 'info', message: expect.stringMatching(/^done: /) }]);
    const bad = await callApply(createFakeNode().host, 'apply', scratch, '--log-format', 'json');
    expect(bad.status).toBe(2);
    expect(
      bad.err
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      {
        time: expect.any(String),
        level: 'error',
        message: expect.stringMatching(/is not a bundle that can be applied:\n {2}/),
        code: 'bad-bundle',
        help: expect.stringContaining('compile it again'),
      },
    ]);
  });
});

describe('systemd', () => {
  test('hears that the service is ready, how it is, and when it stops', async () => {
    const node = createFakeNode();
    process.env['NOTIFY_SOCKET'] = '/run/nowhere';
    try {
      await watchFor(node, 12, []);
    } finally {
      delete process.env['NOTIFY_SOCKET'];
    }
    const sent = node.commands.filter(({ tool }) => tool === 'systemd-notify').map(({ args }) => args);
    const ready = ['READY=1', 'STATUS=the node matches the bundle'];
    expect(sent).toEqual([ready, ready, ['STOPPING=1']]);
  });

  test('gets no word if it did not ask', async () => {
    const node = createFakeNode();
    await watchFor(node, 12, []);
    expect(node.commands.filter(({ tool }) => tool === 'systemd-notify')).toEqual([]);
  });

  test('hears from the watchdog twice in its time, until a round does not end', async () => {
    const sent: string[] = [];
    let uptime = 0;
    const run: Host['run'] = async ({ args }) => {
      sent.push(...args);
      return { kind: 'missing' };
    };
    const notifier = createNotifier({ run, uptime: () => uptime }, { NOTIFY_SOCKET: 'x', WATCHDOG_USEC: '20000' });
    const wait = () => new Promise((resolve) => setTimeout(resolve, 60));
    while (sent.length < 2) await wait();
    expect(new Set(sent)).toEqual(new Set(['WATCHDOG=1']));
    uptime = 31 * 60_000;
    sent.length = 0;
    await wait();
    expect(sent).toEqual([]);
    await notifier.report('fine');
    while (sent.length < 3) await wait();
    expect(sent.slice(0, 3)).toEqual(['READY=1', 'STATUS=fine', 'WATCHDOG=1']);
    await notifier.stop();
    sent.length = 0;
    await wait();
    expect(sent).toEqual([]);
  });

  test.runIf(canRun('systemd-notify', '--version') && canRun('python3', '--version'))(
    'hears it from the real systemd-notify, over a socket',
    async () => {
      const socket = join(scratch, 'notify');
      const script = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1]); print("bound", flush=True)
while True: print(s.recv(4096).decode(), flush=True)`;
      const listener = spawn('python3', ['-c', script, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
      const lines: string[] = [];
      const isOver = new Promise<void>((resolve) => {
        createInterface({ input: listener.stdout }).on('line', (line) => {
          lines.push(line);
          if (line === 'STOPPING=1') resolve();
        });
      });
      try {
        while (lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
        process.env['NOTIFY_SOCKET'] = socket;
        const notifier = createNotifier(realHost, process.env);
        await notifier.report('the node matches the bundle');
        await notifier.stop();
        await isOver;
      } finally {
        delete process.env['NOTIFY_SOCKET'];
        listener.kill();
      }
      const said = lines.filter((line) => line.includes('=') && !line.startsWith('BARRIER'));
      expect(said).toEqual(['READY=1', 'STATUS=the node matches the bundle', 'STOPPING=1']);
    },
    30_000,
  );
});

/** Whether this machine has a program. */
function canRun(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

test('a port that is taken is reported once, not in each round; one address cannot serve both', async () => {
  const node = createFakeNode();
  const { createServer } = await import('node:net');
  const other = createServer().listen(port + 9, '127.0.0.1');
  const err = await watchFor(node, 45, ['--healthz', `127.0.0.1:${port + 9}`]);
  other.close();
  expect(err.match(/EADDRINUSE/g)).toHaveLength(1);
  const twice = await callApply(node.host, 'watch', bundle, '--metrics', '127.0.0.1:9', '--healthz', '127.0.0.1:9');
  expect(twice).toMatchObject({
    status: 2,
    err: expect.stringContaining('--metrics and --healthz are both 127.0.0.1:9'),
  });
});
