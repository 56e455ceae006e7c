import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createPorts, healthCheckPorts, type ServedPorts } from '../../src/apply/monitor/serve-ports.ts';
import type { Manifest } from '../../src/bundle/manifest.ts';
import { loadBundle } from '../../src/sides/load-bundle.ts';

const { manifest } = await loadBundle('fixtures/dual-stack/expected-ipvs');
const port = 20_000 + (process.pid % 20_000);
const listenOn = { ipv4: ['127.0.0.1'], ipv6: [] };
const health = { healthy: true };
const servers = createPorts();
afterEach(async () => {
  health.healthy = true;
  await servers.close();
});

function withEndpoints(localEndpoints: number, at = port): ServedPorts {
  const asked: Manifest = {
    ...manifest,
    families: ['ipv4'],
    healthChecks: [{ port: at, service: 'shop/web', localEndpoints: { ipv4: localEndpoints } }],
  };
  return healthCheckPorts(asked, listenOn, () => health.healthy);
}

test('goes on where a connection cannot be taken, however often', async () => {
  const { createServer } = http;
  let server: http.Server | undefined;
  http.createServer = ((...args: Parameters<typeof createServer>) =>
    (server = createServer(...args))) as typeof createServer;
  syncBuiltinESMExports();
  try {
    expect(await servers.update(withEndpoints(1))).toEqual([]);
  } finally {
    http.createServer = createServer;
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
    expect.stringMatching(/^cannot open health check port .*EADDRINUSE/),
  ]);
  await others.close();
  expect(await servers.update(withEndpoints(2))).toEqual([]);
  expect((await ask()).headers.get('x-load-balancing-endpoint-weight')).toBe('2');
});

test('connections that ask for nothing leave the files of the process to the tools', async () => {
  expect(await servers.update(withEndpoints(1))).toEqual([]);
  const sockets = Array.from({ length: 300 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  try {
    await expect.poll(() => sockets.filter((socket) => socket.destroyed).length).toBe(200);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
