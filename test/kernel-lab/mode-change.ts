// Checks that long connections survive changes of mode, in both directions and through each kind of address, and that no new connection
// fails meanwhile. If connections must be cut, kpc-apply must report how many. The first argument is the mode besides IPVS: iptables, or
// nftables in a kernel that also has nftables. With KPC_FULL=1, the suite makes all changes between the three modes, and runs each check in
// both kernels. Without it, the suite changes there and back, and skips checks in the emulated kernel that would only repeat those in the
// fast one.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isFull } from '../support/rounds.ts';
import { assert, assertSame, expectApply, kpcApply, startSuite, stateDir } from './harness.ts';
import { applyUnderFire, openAll, probeOf, routesOfAllKinds, type Route } from './long-connections.ts';
import { buildNetwork, run } from './network.ts';
import { normalizeTables, saveByHand, saveState, type SavedState } from './saved-state.ts';
import { startServers } from './servers.ts';
import type { Probe } from './traffic.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js' } = process.env;
const other = process.argv[2] === 'nftables' ? 'nftables' : 'iptables';
const [ipvs, rules] = [`${bundles}/before-ipvs`, `${bundles}/before-${other}`];
const suite = startSuite(`mode-change-${other}`);
buildNetwork();
const untouched = saveNode();
const untouchedSysctls = readSysctls();
/** Changes of mode, from IPVS mode and back to it. */
const changes = (isFull ? allChanges() : [other, 'ipvs']).map((mode) => `${bundles}/before-${mode}`);
const traffic = await startServers();
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function allChanges(): readonly string[] {
  if (other === 'iptables') return ['iptables', 'ipvs', 'iptables', 'ipvs'];
  return ['iptables', 'nftables', 'ipvs', 'nftables', 'iptables', 'ipvs'];
}

/** Runs a check whose result is the same in the emulated kernel and in the fast one. */
async function checkInFastKernel(name: string, work: () => Promise<void>): Promise<void> {
  if (isFull || other === 'iptables') await suite.check(name, work);
}

interface SavedNode extends SavedState {
  readonly tables: string;
}

const tablesOfKubeProxy = 'table ip kube-proxy\ntable ip6 kube-proxy\n';

/** Routes of all kinds, and two more from the node. In the emulated kernel, where each route takes seconds, only every second one. */
const routes = [...routesOfAllKinds, ['-', '10.96.0.13', 80, 'tcp'], ['-', '10.96.0.11', 53, 'udp']].filter(
  (_, i) => isFull || other === 'iptables' || i % 2 === 0,
) as readonly Route[];

/** One probe of each kind, for new connections during the change. */
const newcomers: readonly Probe[] = routesOfAllKinds
  .filter((_, i) => [0, 1, 2, 5, 8, 10, 12, 13, 14].includes(i))
  .map(probeOf);

/** The port of a program on the node that listens on all addresses. It must not be reachable at the addresses of Services. */
const daemonPort = 9999;
for (const protocol of ['tcp', 'udp'] as const) {
  await traffic.listen('-', protocol, '0.0.0.0', daemonPort, 'daemon');
  await traffic.listen('-', protocol, '::', daemonPort, 'daemon');
}
const intruders: readonly Probe[] = ['pod-b', 'client', '-'].flatMap((from) =>
  ['10.96.0.10', 'fd00:96::10', '203.0.113.10'].flatMap((address) =>
    (['tcp', 'udp'] as const).map((protocol) => ({ from, protocol, address, port: daemonPort })),
  ),
);

/** Throws if this program answers at the address of a Service. */
async function assertClosed(): Promise<void> {
  const answers = await traffic.probe(intruders);
  const answered = answers.flatMap((answer, i) =>
    answer.startsWith('daemon')
      ? [`${intruders[i]?.from} at ${intruders[i]?.address} over ${intruders[i]?.protocol}`]
      : [],
  );
  assert(answered.length === 0, `a program on the node answers: ${answered.join('; ')}`);
}

/**
 * Throws if any transfer has broken or makes no progress, with its route. Waits for two answers each, because the first may have been under
 * way.
 */
async function assertMoving(ids: readonly string[], some: readonly Route[]): Promise<void> {
  const counts = ids.map(() => new Set<string>());
  const until = Date.now() + 20_000;
  for (;;) {
    const now = await Promise.all(ids.map((id) => traffic.status(id)));
    now.forEach((status, i) => counts[i]?.add(status));
    const waiting = ids.filter((_, i) => (counts[i]?.size ?? 0) < 3);
    const isBroken = now.some((status) => !status.startsWith('open '));
    if (waiting.length === 0 && !isBroken) return;
    if (isBroken || Date.now() > until) {
      const wrong = ids.flatMap((id, i) => {
        const isRight = now[i]?.startsWith('open ') && !waiting.includes(id);
        return isRight ? [] : [`${id} (${some[i]?.join(' ')}): ${now[i]}`];
      });
      throw new Error(`${ids.length - wrong.length} of ${ids.length} go on; not ${wrong.join('; ')}`);
    }
    await sleep(50);
  }
}

const stopAll = async (ids: readonly string[]): Promise<void> => {
  for (const id of ids) await traffic.stop(id);
};
/**
 * Applies the rules until a condition holds. Polls before each apply, because reset connections are remembered for ten seconds and polling
 * is cheaper.
 */
async function applyUntil(isSo: () => boolean): Promise<void> {
  const isRemembered = () =>
    /\b(?:CLOSE|ESTABLISHED)\b/.test(run('ipvsadm', ['-Lnc'])) ||
    /\bCLOSE\b/.test(run('conntrack', ['-L', '-p', 'tcp']));
  for (let i = 0; i < 60 && isRemembered(); i++) await sleep(500);
  for (let i = 0; i < 20 && !isSo(); i++) {
    await expectApply(['apply', rules], 0);
    if (!isSo()) await sleep(2000);
  }
}

/**
 * Expects that the node matches the bundle. Connections that were opened during the change end in their own time: on a busy machine between
 * an apply and its verify, so that what stayed for them is extra. Then the next apply takes it away.
 */
async function expectMatch(bundle: string): Promise<void> {
  for (let i = 0; i < 20 && (await kpcApply(['verify', bundle])).status !== 0; i++)
    await expectApply(['apply', bundle], 0);
  await expectApply(['verify', bundle], 0);
}

const hasIpvs = () => run('ipvsadm', ['-Sn']) !== '' || run('ip', ['-o', 'link']).includes('kube-ipvs0');

await suite.check("the program answers at the node's own address", async () => {
  const answers = await traffic.probe([{ from: 'client', protocol: 'tcp', address: '192.168.0.1', port: daemonPort }]);
  assert(answers[0]?.startsWith('daemon') === true, `it says ${answers[0]}`);
});

await checkInFastKernel('IPVS goes when its connections have ended', async () => {
  await expectApply(['apply', ipvs], 0);
  const ids = await openAll(traffic, 'ending-', routes.slice(0, 5));
  const { err } = await expectApply(['apply', rules], 0);
  assert(/; 5 real servers wait for 5 connections to end; 5 addresses /m.test(err), err);
  const listed = run('ipvsadm', ['-Sn']);
  await assertClosed();
  assert(run('ip', ['addr', 'show', 'kube-ipvs0']).includes('10.96.0.10/32'), 'its addresses are gone');
  const { out: verified } = await expectApply(['verify', rules], 0);
  assert(
    /^\d+ addresses of IPVS mode stay for open connections; KUBE-IPVS-FILTER refuses new ones$/m.test(verified),
    verified,
  );
  assert(/ -w 0$/m.test(listed) && !/ -w 1$/m.test(listed), `not all at weight 0:\n${listed}`);
  await assertMoving(ids, routes);
  // The node's own connections already follow the rules, but come from the virtual address while the node still has it.
  const own: readonly Route[] = [
    ['-', '10.96.0.10', 80, 'tcp'],
    ['-', 'fd00:96::10', 80, 'tcp'],
  ];
  const ownIds = await openAll(traffic, 'own-', own);
  await stopAll(ids);
  await applyUntil(() => run('ipvsadm', ['-Sn']) === '');
  const { err: held } = await expectApply(['apply', rules], 0);
  assert(/; 2 addresses of IPVS mode stay for open connections; KUBE-IPVS-FILTER refuses new ones$/m.test(held), held);
  await assertMoving(ownIds, own);
  await assertClosed();
  await stopAll(ownIds);
  await applyUntil(() => !hasIpvs());
  assert(!hasIpvs(), `IPVS never went:\n${run('ipvsadm', ['-Ln'])}`);
  const { out: matches } = await expectApply(['verify', rules], 0);
  assertSame('verify', matches, 'the node matches the bundle\n');
  const rest = [...run('ipset', ['list', '-n']).split('\n'), ...run('iptables-save', []).split('\n')];
  const left = rest.filter((line) => /^(?:KUBE-|:KUBE-IPVS)/.test(line));
  assert(left.length === 0, `left of IPVS mode: ${left.join(', ')}`);
});

await checkInFastKernel(
  "a flow that the kernel knows from before passes at no port but a virtual server's",
  async () => {
    const address = '203.0.113.10';
    const returning = Array.from({ length: 2 }, (): Probe => ({
      from: 'client',
      protocol: 'tcp',
      address,
      port: daemonPort,
    }));
    // Probe from two fixed source ports.
    const probeFromSamePorts = async () => {
      const range = 'net.ipv4.ip_local_port_range';
      const sysctl = ['netns', 'exec', 'client', 'sysctl'];
      const usual = run('ip', [...sysctl, '-n', range]).trim();
      run('ip', [...sysctl, '-q', '-w', `${range}=40000 40001`]);
      const answers = await traffic.probe(returning);
      run('ip', [...sysctl, '-q', '-w', `${range}=${usual}`]);
      return answers;
    };
    // Use a timeout longer than two changes of mode on a busy machine.
    run('sysctl', ['-q', '-w', 'net.netfilter.nf_conntrack_tcp_timeout_syn_sent=900']);
    // The node does not have this address yet, so it forwards the packet.
    await probeFromSamePorts();
    await expectApply(['apply', ipvs], 0);
    const waiting: readonly Route[] = [['client', address, 80, 'tcp']];
    const ids = await openAll(traffic, 'waiting-', waiting);
    await expectApply(['apply', rules], 0);
    assert(run('ip', ['addr', 'show', 'kube-ipvs0']).includes(`${address}/32`), 'the address is gone');
    assertSame('after', (await probeFromSamePorts()).join(), 'refused,refused');
    await assertMoving(ids, waiting);
    await stopAll(ids);
    await expectApply(['apply', rules, '--drain-timeout', '0'], 0);
  },
);

const opened: string[] = [];
const openedRoutes: Route[] = [];

await suite.check(
  `${routes.length} connections of all kinds go on over ${changes.length} changes of mode, and so do those opened between`,
  async () => {
    await expectApply(['apply', ipvs], 0);
    // Use a timeout long enough for a busy machine, because a UDP flow that pauses for longer counts as a new one.
    run('ipvsadm', ['--set', '900', '2', '20']);
    opened.push(...(await openAll(traffic, 'first-', routes)));
    openedRoutes.push(...routes);
    for (const [i, bundle] of changes.entries()) {
      await applyUnderFire(traffic, bundle, newcomers, assertClosed);
      await expectMatch(bundle);
      await assertMoving(opened, openedRoutes);
      const some = routes.filter((_, at) => at % 4 === i);
      opened.push(...(await openAll(traffic, `later-${i}-`, some)));
      openedRoutes.push(...some);
    }
  },
);

await checkInFastKernel('plan counts the connections that wait, and those that would be cut', async () => {
  const waiting = await kpcApply(['plan', rules]);
  assert(/^\d+ connections open to real servers that drain$/m.test(waiting.out), waiting.out);
  const cutting = await kpcApply(['plan', rules, '--drain-timeout', '0']);
  assert(/^! \d+ connections would be cut$/m.test(cutting.out), cutting.out);
});
await stopAll(opened);

await checkInFastKernel('--drain-timeout 0 cuts at once, and says how many', async () => {
  await expectApply(['apply', ipvs], 0);
  const ids = await openAll(traffic, 'cut-', routes.slice(0, 5));
  const { err } = await expectApply(['apply', rules, '--drain-timeout', '0'], 0);
  assert(/; \d+ connections were cut$/m.test(err), err);
  assert(!hasIpvs(), 'IPVS is still there');
  await stopAll(ids);
});

await checkInFastKernel('--drain-timeout ends the waiting at a later apply', async () => {
  await expectApply(['apply', ipvs], 0);
  const ids = await openAll(traffic, 'late-', routes.slice(0, 5));
  await expectApply(['apply', rules, '--drain-timeout', '1h'], 0);
  await assertMoving(ids, routes);
  const { err } = await expectApply(['apply', rules, '--drain-timeout', '100ms'], 0);
  assert(/connections were cut$/m.test(err) && !hasIpvs(), err);
  await stopAll(ids);
});

/** Runs kpc-apply as a process, with an ipvsadm that kills it before or after the first change. */
function applyAndKill(bundle: string, change: 'before' | 'after'): void {
  const bin = '/run/killer';
  mkdirSync(bin, { recursive: true });
  const real = run('bash', ['-c', 'command -v ipvsadm']).trim();
  const work = change === 'after' ? `${real} "$@"` : ':';
  writeFileSync(
    `${bin}/ipvsadm`,
    `#!/bin/bash\nif [ "$1" = -R ]; then ${work}; kill -KILL $PPID; sleep 1; exit; fi\nexec ${real} "$@"\n`,
  );
  chmodSync(`${bin}/ipvsadm`, 0o755);
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const { signal } = spawnSync(process.execPath, [program, 'apply', bundle, '--state-dir', stateDir], { env });
  assert(signal === 'SIGKILL', `it was not killed, but ended with ${signal}`);
}

const kills = [
  ['after', 'rollback'],
  ['before', 'apply'],
  ['before', 'watch'],
] as const;
for (const [change, next] of isFull ? kills : kills.slice(0, 1)) {
  await checkInFastKernel(
    `SIGKILL ${change} virtual servers change, then ${next}: a whole node, and connections`,
    async () => {
      await expectApply(['apply', ipvs], 0);
      const whole = run('ipvsadm', ['-Sn']);
      const ids = await openAll(traffic, `kill-${change}-${next}-`, routes.slice(0, 3));
      applyAndKill(rules, change);
      await assertMoving(ids, routes);
      await assertClosed();
      if (next === 'watch') await watchFor(rules);
      else await expectApply(next === 'apply' ? ['apply', rules] : ['rollback'], 0);
      await assertMoving(ids, routes);
      await expectApply(['verify', next === 'rollback' ? ipvs : rules], 0);
      if (next === 'rollback') assertSame('ipvsadm -Sn', sorted(run('ipvsadm', ['-Sn'])), sorted(whole));
      const answers = await traffic.probe(newcomers);
      assert(
        answers.every((answer) => answer.startsWith('pod-')),
        answers.join(', '),
      );
      await stopAll(ids);
      await expectApply(['apply', rules, '--drain-timeout', '0'], 0);
      assert(!hasIpvs(), 'IPVS is still there');
    },
  );
}

await checkInFastKernel('a roll back out of IPVS lets its connections end, too', async () => {
  await expectApply(['apply', ipvs], 0);
  const before = normalizeTables(run('iptables-save', []));
  const ids = await openAll(traffic, 'back-', routes.slice(0, 5));
  await expectApply(['rollback'], 0);
  await assertMoving(ids, routes);
  await expectApply(['verify', rules], 0);
  await expectApply(['rollback'], 0);
  assertSame('iptables-save', normalizeTables(run('iptables-save', [])), before);
  await assertMoving(ids, routes);
  await stopAll(ids);
});

await suite.check(
  'without connections, each change leaves what a fresh node has, and says what else is left',
  async () => {
    await expectApply(['cleanup'], 0);
    assertSameNode(saveNode(), untouched);
    await expectApply(['apply', ipvs], 0);
    // Delete earlier UDP flows, which have no end.
    run('conntrack', ['-F']);
    const said = new Set<string>();
    // The fast kernel also checks the way back to IPVS mode.
    for (const bundle of isFull || other === 'iptables' ? changes : changes.slice(0, 1)) {
      const { err } = await expectApply(['apply', bundle, '--drain-timeout', '0'], 0);
      for (const [name] of err.matchAll(/\bnet\.[\w.]+/g)) said.add(name);
      assertSameNode(saveNode(), {
        ...saveByHand(bundle),
        tables: bundle.endsWith('nftables') ? tablesOfKubeProxy : '',
      });
      assert((await expectApply(['verify', bundle], 0)).out === 'the node matches the bundle\n', 'verify names more');
      assertSysctlsSaid(bundle, said);
    }
    await expectApply(['cleanup'], 0);
    assertSameNode(saveNode(), untouched);
  },
);

traffic.close();
suite.finish();

/** Saves the node's state as the tools print it, with nftables' tables if this kernel has nftables. */
function saveNode(): SavedNode {
  return { ...saveState(), tables: other === 'nftables' ? run('nft', ['list', 'tables']) : '' };
}

function assertSameNode(got: SavedNode, want: SavedNode): void {
  for (const part of Object.keys(want) as (keyof SavedNode)[]) assertSame(part, got[part], want[part]);
}

/** Returns the network's sysctls and their values, without counters, sysctls of temporary links, and sysctls that all modes set. */
function readSysctls(): ReadonlyMap<string, string> {
  const lines = run('bash', ['-c', 'sysctl -a 2>/dev/null || true']).split('\n');
  const pairs = lines.flatMap((line) => {
    const [, name = '', value = ''] = /^(net\.\S+) = (.*)$/.exec(line) ?? [];
    const isSetting = name !== '' && !/_count$|\.(?:conf|neigh)\.kube-ipvs0\.|stat_|nf_conntrack_/.test(name);
    return isSetting ? [[name, value] as const] : [];
  });
  return new Map(pairs);
}

/** Throws if a sysctl changed that this bundle does not set and that kpc-apply did not name. */
function assertSysctlsSaid(bundle: string, said: ReadonlySet<string>): void {
  const file = `${bundle}/sysctl.conf`;
  const own = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const unsaid = [...readSysctls()].flatMap(([name, value]) => {
    const was = untouchedSysctls.get(name);
    const isOther = was !== undefined && was !== value && !said.has(name) && !own.includes(`${name} = `);
    return isOther ? [`${name}: ${was}, now ${value}`] : [];
  });
  assert(unsaid.length === 0, unsaid.join('; '));
}

function sorted(text: string): string {
  return text.split('\n').toSorted().join('\n');
}

/** Runs watch as a process until it has synced once. */
async function watchFor(bundle: string): Promise<void> {
  // Wait up to two minutes, because the machine may be busy.
  const verified = `for i in $(seq 60); do sleep 2; node ${program} verify ${bundle} --state-dir ${stateDir} >/dev/null && break; done`;
  const script = `node ${program} watch ${bundle} --sync-period 1s --state-dir ${stateDir} & pid=$!; ${verified}; kill $pid; wait $pid`;
  const { status, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  assert(status === 0, `watch ended with ${status}: ${stderr}`);
}
