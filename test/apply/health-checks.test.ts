import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net, { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { createPorts, healthCheckPorts, type ServedPort } from '../../src/apply/monitor/serve-ports.ts';
import type { Manifest } from '../../src/bundle/manifest.ts';
import { loadBundle } from '../../src/apply/open/load-bundle.ts';

const { manifest } = await loadBundle('fixtures/dual-stack/expected-ipvs');
const port = 20_000 + (process.pid % 20_000);
const listenOn = { ipv4: ['127.0.0.1'], ipv6: [] };
const health = { healthy: true };
const servers = createPorts();
afterEach(async () => {
  health.healthy = true;
  await servers.close();
});

function withEndpoints(localEndpoints: number, at = port): readonly ServedPort[] {
  const asked: Manifest = {
    ...manifest,
    families: ['ipv4'],
    healthChecks: [{ port: at, service: 'shop/web', localEndpoints: { ipv4: localEndpoints } }],
  };
  return healthCheckPorts(asked, listenOn, () => health.healthy);
}

test('goes on where a connection cannot be taken, however often', async () => {
  const { createServer } = net;
  let server: net.Server | undefined;
  net.createServer = ((...args: Parameters<typeof createServer>) =>
    (server = createServer(...args))) as typeof createServer;
  syncBuiltinESMExports();
  try {
    expect(await servers.update(withEndpoints(1))).toEqual([]);
  } finally {
    net.createServer = createServer;
    syncBuiltinESMExports();
  }
  for (let i = 0; i < 3; i++) server?.emit('error', new Error('accept EMFILE'));
  expect(server).toBeDefined();
  expect((await ask()).status).toBe(200);
});

const ask = (at = port) => fetch(`http://127.0.0.1:${at}/healthz`);

test('answers 200 with the number of local endpoints, byte for byte as kube-proxy does', async () => {
  expect(await servers.update(withEndpoints(2))).toEqual([]);
  const response = await ask();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  expect(response.headers.get('x-load-balancing-endpoint-weight')).toBe('2');
  expect(await response.text()).toBe(`{
\t"service": {
\t\t"namespace": "shop",
\t\t"name": "web"
\t},
\t"localEndpoints": 2,
\t"serviceProxyHealthy": true
}`);
});

test('answers 503 without local endpoints', async () => {
  await servers.update(withEndpoints(0));
  const response = await ask();
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ localEndpoints: 0, serviceProxyHealthy: true });
});

test('answers 503 while the rules are not in place', async () => {
  health.healthy = false;
  await servers.update(withEndpoints(2));
  const response = await ask();
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ localEndpoints: 2, serviceProxyHealthy: false });
});

test('takes up the numbers of a new bundle, and closes a port that has gone', async () => {
  await servers.update(withEndpoints(2));
  await servers.update(withEndpoints(0));
  expect((await ask()).status).toBe(503);
  await servers.update(withEndpoints(1, port + 1));
  expect((await ask(port + 1)).status).toBe(200);
  await expect(ask()).rejects.toThrow('fetch failed');
});

test('says what it cannot open, and tries again with the next bundle', async () => {
  const others = createPorts();
  await others.update(withEndpoints(1));
  expect(await servers.update(withEndpoints(2))).toEqual([
    {
      code: 'port-not-opened',
      arguments: {
        use: 'health check',
        of: 'shop/web',
        port,
        family: 'ipv4',
        cause: expect.stringContaining('EADDRINUSE'),
      },
    },
  ]);
  await others.close();
  expect(await servers.update(withEndpoints(2))).toEqual([]);
  expect((await ask()).headers.get('x-load-balancing-endpoint-weight')).toBe('2');
});

/** A connection, with all that it receives until its end. */
function open(at = port): { readonly socket: Socket; readonly received: Promise<string> } {
  const socket = connect(at, '127.0.0.1').on('error', () => {});
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  return { socket, received: new Promise((resolve) => socket.on('close', () => resolve(text))) };
}

/** Less than silent connections stay open. */
const patience = { timeout: 8000 };

const request = 'GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n';

test('connections that ask for nothing make room for new ones, the oldest first, over all ports', async () => {
  expect(await servers.update([...withEndpoints(1), ...withEndpoints(2, port + 1)])).toEqual([]);
  const silent = Array.from({ length: 300 }, (_, i) => open(port + (i % 2)));
  try {
    await expect.poll(() => silent.filter(({ socket }) => socket.destroyed).length, patience).toBe(300 - 256);
    expect(silent.slice(-100).some(({ socket }) => socket.destroyed)).toBe(false);
    expect((await ask()).status).toBe(200);
    expect((await ask(port + 1)).status).toBe(200);
  } finally {
    for (const { socket } of silent) socket.destroy();
  }
});

test('a client that opens many takes no room from another', async () => {
  await servers.update(withEndpoints(1));
  const other = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  await new Promise((resolve) => other.on('connect', resolve));
  const silent = Array.from({ length: 300 }, () => open());
  try {
    await expect.poll(() => silent.filter(({ socket }) => socket.destroyed).length, patience).toBe(301 - 256);
    expect(other.destroyed).toBe(false);
  } finally {
    for (const { socket } of silent) socket.destroy();
    other.destroy();
  }
});

test('answers while a client opens a new silent connection for each one that is closed', async () => {
  expect(await servers.update(withEndpoints(1))).toEqual([]);
  let isOver = false;
  const sockets = new Set<Socket>();
  const keepOpen = (): void => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.add(socket);
    socket.on('close', () => {
      sockets.delete(socket);
      if (!isOver) keepOpen();
    });
  };
  for (let i = 0; i < 300; i++) keepOpen();
  try {
    for (let i = 0; i < 5; i++) expect((await ask()).status).toBe(200);
  } finally {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  }
});

/** Asks, then opens silent connections, and goes on in the background: prints the answer to a file, and keeps all open. */
const askBeforeOthers = `
  use IO::Socket::INET;
  sub to { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]") or die }
  my $asking = to(); syswrite $asking, "GET /healthz HTTP/1.1\\r\\n\\r\\n";
  my @silent = map { to() } 1 .. 450;
  exit if fork; close STDOUT; close STDERR;
  open my $file, '>', $ARGV[1]; my $line = <$asking>; print $file $line // "nothing"; close $file; sleep 1;`;

test('hears each of many connections that came while it was busy', async () => {
  await servers.update(withEndpoints(1));
  const file = join(mkdtempSync(join(tmpdir(), 'kpc-busy-')), 'answer');
  // Until it has ended, nothing is accepted.
  expect(spawnSync('perl', ['-e', askBeforeOthers, `${port}`, file]).status).toBe(0);
  await expect.poll(() => existsSync(file) && readFileSync(file, 'utf8'), patience).toBe('HTTP/1.1 200 OK\r\n');
});

test('gives one answer a connection, and reads nothing after the request', async () => {
  let answers = 0;
  const [served] = withEndpoints(1);
  if (!served) throw new Error('no port');
  await servers.update([{ ...served, answer: (path) => (answers++, served.answer(path)) }]);
  const { socket } = open();
  socket.write(request.repeat(2000));
  await new Promise((resolve) => socket.on('close', resolve));
  expect(answers).toBe(1);
});

test.each<readonly [what: string, send: (socket: Socket) => void, expected: RegExp]>([
  [
    'in small pieces',
    (socket: Socket) => void [...request].forEach((byte) => socket.write(byte)),
    /^HTTP\/1\.1 200 OK\r\n/,
  ],
  ['and ends its side', (socket: Socket) => void socket.end(request), /^HTTP\/1\.1 200 OK\r\n/],
  [
    'with a whole URL',
    (socket: Socket) => void socket.write('GET http://node/x?y HTTP/1.0\n\n'),
    /^HTTP\/1\.1 200 OK\r\n/,
  ],
  [
    'for the head alone',
    (socket: Socket) => void socket.write(request.replace('GET', 'HEAD')),
    /Connection: close\r\n\r\n$/,
  ],
  ['that is none', (socket: Socket) => void socket.write('\x16\x03\x01 no\r\n\r\n'), /^HTTP\/1\.1 400 Bad Request\r\n/],
  [
    'without an end',
    (socket: Socket) => void socket.write(`GET / HTTP/1.1\r\nX: ${'x'.repeat(9000)}`),
    /^HTTP\/1\.1 431 /,
  ],
  ['and only half of it', (socket: Socket) => void socket.end('GET / HTTP/1.1\r\n'), /^$/],
])('a client that sends a request %s', async (_, send, expected) => {
  await servers.update(withEndpoints(1));
  const { socket, received } = open();
  send(socket);
  expect(await received).toMatch(expected);
});
