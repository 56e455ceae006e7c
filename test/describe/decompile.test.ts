import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const update = process.env['UPDATE_GOLDEN'] === '1';

const dumps = join(projectFolder, 'fixtures/dumps');
const expected = join(projectFolder, 'test/describe/expected');
const names = readdirSync(dumps).filter((name) => /^(kube-proxy|nft)-/.test(name));

describe('kpc describe --from-dump', () => {
  test.for(names)('%s', async (name) => {
    const dump = `fixtures/dumps/${name}`;
    const table = await runKpc(['describe', '--from-dump', dump]);
    const json = await runKpc(['describe', '--from-dump', dump, '--output', 'json']);
    for (const [run, file] of [
      [table, join(expected, `dump-${name}.txt`)],
      [json, join(expected, `dump-${name}.json`)],
    ] as const) {
      if (update) writeFileSync(file, run.stdout);
      expect(run.status, run.stderr).toBe(0);
      expect(run.stdout).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
    }
  });

  test.for([
    ['kube-proxy-iptables-loadbalancer-local', 'nginx', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', '12.12.12.12', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', '30938', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', '10.244.2.4:80', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', 'KUBE-SVC-2CMXP7HKUVJN7L6M', 'default/nginx'],
    ['kube-proxy-ipvs-dual-stack-nodeport', '[fd00:10:96::77]:80', '[fd00:10:96::77]:80/TCP'],
    ['kube-proxy-ipvs-dual-stack-nodeport', '10.96.7.7,tcp:80', '10.96.7.7:80/TCP'],
    ['kube-proxy-ipvs-dual-stack-nodeport', '31080', 'node:31080/TCP'],
  ] as const)('%s: %s', async ([name, what, title]) => {
    const run = await runKpc(['describe', what, '--from-dump', join(dumps, name)]);
    expect(run.status).toBe(0);
    expect(run.stdout.split('\n')[0]).toBe(title);
  });

  test('exit status 1 where the dump does not show it, 2 where there is no dump', async () => {
    const dump = join(dumps, 'kube-proxy-ipvs-scheduler-mh');
    expect((await runKpc(['describe', 'no-such-service', '--from-dump', dump])).status).toBe(1);
    expect((await runKpc(['describe', '--from-dump', join(projectFolder, 'src')])).status).toBe(2);
  });
});
