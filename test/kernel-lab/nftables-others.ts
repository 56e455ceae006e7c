// Checks nftables mode beside other programs, in a network namespace of this machine's kernel: unread objects in kube-proxy's table, a
// table owned by a running program, tables of firewalls and with similar names, and a node without the tools of other modes.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../../src/apply/node/host.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { sideOfBundle } from '../../src/snapshot/open/stored-side.ts';
import { ask } from '../../src/ask/trace/ask.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { ended, failOnce } from '../support/tool-faults.ts';
import { assert, assertSame, expectApply, isRestore, kpcApply, startSuite } from './harness.ts';
import { run } from './network.ts';

const { KPC_BUNDLES: bundles = '' } = process.env;
const suite = startSuite('nftables-others');
const [before, after] = [`${bundles}/before-nftables`, `${bundles}/after-nftables`];

/** firewalld, a firewall that drops unknown packets, Docker and Calico with iptables-nft, and tables with similar names. */
const theirs = `
table inet firewalld {
  chain filter_INPUT { type filter hook input priority 10; policy accept; ct state { established, related } accept; iifname "lo" accept; }
  chain nat_PREROUTING { type nat hook prerouting priority -90; policy accept; }
}
table inet filter {
  set blocked { type ipv4_addr; flags interval, timeout; elements = { 198.51.100.0/24, 203.0.113.5 timeout 1h }; }
  counter hits { packets 7 bytes 420 }
  chain forward { type filter hook forward priority 0; policy drop; ip saddr @blocked counter drop; }
}
table inet kube-proxy { chain theirs { counter drop; }; }
table arp kube-proxy { chain in { type filter hook input priority 0; policy accept; }; }
table bridge kube-proxy { chain x { }; }
table ip kube-proxy-2 { chain services { drop; }; }
table ip calico { map cali40-x { type ipv4_addr : verdict; }; chain filter-cali-FORWARD { }; }
`;
run('nft', ['-f', '-'], theirs);
addDocker();
const saveOthers = () =>
  run('nft', ['-s', 'list', 'ruleset']).replaceAll(/^table ip6? kube-proxy \{\n(?:(?!\}).*\n)*\}\n/gm, '');
const others = saveOthers();

function addDocker(): void {
  const rules = `*nat
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
COMMIT
*filter
:DOCKER-USER - [0:0]
:FORWARD DROP [0:0]
-A FORWARD -j DOCKER-USER
-A DOCKER-USER -j RETURN
COMMIT
`;
  run('iptables-nft-restore', ['--noflush'], rules);
}

/** Returns the table in an order that does not depend on its history. */
function saveTable(): string {
  return run('nft', ['-s', 'list', 'table', 'ip', 'kube-proxy'])
    .split(/[\s,]+/)
    .toSorted()
    .join('\n');
}

await suite.check('a node without iptables, ipset and ipvsadm goes through all commands', async () => {
  const host: Host = {
    ...realHost,
    run: async (command) =>
      /^(?:ip6?tables.*|ipset|ipvsadm|conntrack)$/.test(command.tool) ? { kind: 'missing' } : realHost.run(command),
  };
  for (const args of [
    ['apply', before],
    ['verify', before],
    ['apply', after],
    ['rollback'],
    ['verify', before],
    ['dump', '-o', '/run/dump'],
    ['cleanup'],
  ]) {
    const { status, err, out } = await kpcApply(args, host);
    assert(status === 0, `${args[0]} ended with ${status}: ${err}${out}`);
  }
  assertSame('the other tables', saveOthers(), others);
});

await suite.check('the node to begin with', async () => void (await expectApply(['apply', before], 0)));
const beginning = saveTable();

/** Traces a packet from beyond a router to a Service, over a fresh dump. Returns the verdict and the outgoing interface. */
async function traceDump(): Promise<{
  readonly verdict: string;
  readonly tables: readonly string[];
  readonly out: string;
}> {
  rmSync('/run/dumped', { recursive: true, force: true });
  await expectApply(['dump', '-o', '/run/dumped'], 0);
  const files = new Map(readdirSync('/run/dumped').map((name) => [name, readFileSync(`/run/dumped/${name}`, 'utf8')]));
  const { side } = sideOfBundle('/run/dumped', files);
  if (!side) throw new Error('the dump is not read');
  const port = side.ports.find(({ family, clusterIP, endpoints = [] }) => {
    return family === 'ipv4' && clusterIP && endpoints.length > 0;
  });
  assert(port?.clusterIP !== undefined && port.port !== undefined, 'the dump shows no Service');
  const to = `${port.clusterIP.text}:${port.port}`;
  const protocol = port.protocol.toLowerCase() as 'tcp' | 'udp' | 'sctp';
  const asked = ask(
    { from: '203.0.113.77', to, protocol, inInterface: undefined, namespace: undefined },
    sceneOf(side),
  );
  if (asked.kind === 'wrong') throw new Error(`${to}: ${asked.faults.map(({ diagnostic }) => diagnostic.code).join()}`);
  const { fate } = asked.value;
  const rules = fate.steps.flatMap((step) => ('table' in step ? [step.table] : []));
  const ways = fate.steps.flatMap((step) =>
    step.kind === 'route' && step.decision.kind === 'out' ? [step.decision] : [],
  );
  return { verdict: fate.verdict, tables: rules, out: ways.at(-1)?.interface ?? '' };
}

await suite.check('a dump has routes, and the tables of others: what these drop is dropped', async () => {
  // Set forwarding, because a new namespace copies the machine's value.
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  for (const words of [
    'link add eth9 type veth peer name beyond9',
    'addr add 192.0.2.9/24 dev eth9',
    'link set eth9 up',
    'link set beyond9 up',
    'route add default via 192.0.2.1',
  ])
    run('ip', words.split(' '));
  const docker = (policy: 'ACCEPT' | 'DROP') => run('iptables-nft', ['-P', 'FORWARD', policy]);
  const firewall = (policy: 'accept' | 'drop') =>
    run('nft', ['chain', 'inet', 'filter', 'forward', `{ policy ${policy}; }`]);
  docker('ACCEPT');
  const byFirewall = await traceDump();
  firewall('accept');
  const passed = await traceDump();
  docker('DROP');
  const byDocker = await traceDump();
  firewall('drop');
  for (const [stopped, table] of [
    [byFirewall, 'inet filter'],
    [byDocker, 'filter'],
  ] as const)
    assert(stopped.verdict === 'dropped' && stopped.tables.at(-1) === table, JSON.stringify(stopped));
  assert(passed.verdict === 'delivered' && passed.out === 'eth9', JSON.stringify(passed));
  run('ip', ['link', 'del', 'eth9']);
});

const strange = `
add counter ip kube-proxy hits
add quota ip kube-proxy q { over 10 mbytes }
add limit ip kube-proxy l { rate 10/second burst 5 packets; }
add set ip kube-proxy evil { type ipv4_addr; flags dynamic,timeout; size 10; counter; }
add set ip kube-proxy ty { typeof ip daddr . th dport; elements = { 192.0.2.4 . 80 }; }
add map ip kube-proxy counted { type ipv4_addr : counter; elements = { 192.0.2.4 : "hits" }; }
add chain ip kube-proxy theirs
add rule ip kube-proxy theirs counter name "hits" log prefix "a b"
add rule ip kube-proxy theirs ip saddr @evil counter packets 5 bytes 10 quota name "q" limit name "l"
add table ip kube-proxy { flags dormant; }
`;

await suite.check('verify names what is strange, and not the rest of the table', async () => {
  run('nft', ['-f', '-'], strange);
  const { out } = await expectApply(['verify', before], 1);
  assert(/^ {2}~ table kube-proxy \(nftables\): recreated without .*quota q/m.test(out), out);
  assert(out.includes('flags dormant') && !/^ {2}\+ /m.test(out), out);
});
const withStrange = saveTable();

await suite.check('apply replaces the table, and rollback brings back all that was in it', async () => {
  await expectApply(['apply', before], 0);
  assertSame('the table', saveTable(), beginning);
  await expectApply(['rollback'], 0);
  assertSame('the table', saveTable(), withStrange);
});

await suite.check('cleanup, and rollback brings it back from nothing', async () => {
  await expectApply(['cleanup'], 0);
  await expectApply(['rollback'], 0);
  assertSame('the table', saveTable(), withStrange);
});

for (const nth of [1, 2]) {
  await suite.check(`transaction ${nth} fails: all that is strange is there as before`, async () => {
    const { status, err } = await kpcApply(
      ['apply', after],
      failOnce(realHost, isRestore, async () => ended(1, 'no memory'), nth),
    );
    assert(status === 3, `status ${status}: ${err}`);
    assertSame('the table', saveTable(), withStrange);
  });
}

await suite.check('a table that another program has to itself: refused, and kept by cleanup', async () => {
  await expectApply(['cleanup'], 0);
  const owner = spawn('nft', ['-i'], { stdio: ['pipe', 'ignore', 'ignore'] });
  owner.stdin.write('add table ip kube-proxy { flags owner; }\nadd chain ip kube-proxy theirs\n');
  const listed = () => run('nft', ['list', 'tables']).includes('table ip kube-proxy\n');
  for (let i = 0; i < 200 && !listed(); i++) await sleep(50);
  await sleep(200);
  const held = saveTable();
  for (const args of [
    ['apply', before],
    ['apply', '--adopt', before],
  ]) {
    const { status, err } = await kpcApply(args);
    assert(status === 3 && err.includes('table ip kube-proxy'), `${status}: ${err}`);
    assert(/help: stop the program/.test(err), err);
  }
  for (const args of [['cleanup'], ['cleanup', '--adopt']]) {
    const { err } = await expectApply(args, 0);
    assert(err.includes('there is nothing to remove'), err);
  }
  assertSame('the table', saveTable(), held);
  const end = new Promise((resolve) => owner.on('close', resolve));
  owner.stdin.end();
  await end;
  assert(!listed(), 'the table did not go with its program');
  await expectApply(['apply', before], 0);
  assertSame('the table', saveTable(), beginning);
});

await suite.check('another program that changes its own tables all the time disturbs nothing', async () => {
  run('nft', ['-f', '-'], 'table inet busy { set learned { type ipv4_addr; flags timeout; timeout 1s; }; }\n');
  const script = `i=0; while :; do i=$(( (i + 1) % 250 )); nft add element inet busy learned "{ 192.0.2.$i }"; done`;
  const busy = spawn('bash', ['-c', script], { stdio: 'ignore' });
  try {
    for (let i = 0; i < 6; i++) {
      await expectApply(['apply', i % 2 === 0 ? after : before], 0);
      await expectApply(['verify', i % 2 === 0 ? after : before], 0);
    }
  } finally {
    const end = new Promise((resolve) => busy.on('close', resolve));
    busy.kill('SIGKILL');
    await end;
  }
  // The last nft may still run. Without the table, it cannot add anything.
  run('nft', ['delete', 'table', 'inet', 'busy']);
});

await suite.check('it lists its own tables alone, whatever others hold', async () => {
  const { commands } = await expectApply(['verify', before], 0);
  const lists = commands.filter(
    ({ tool, args }) => tool === 'nft' && args.includes('list') && !args.includes('tables'),
  );
  const own = lists.every(({ args }) => /table ip6? kube-proxy$/.test(args.join(' ')));
  assert(lists.length > 0 && own, lists.map(({ args }) => args.join(' ')).join('; '));
});

await suite.check('cleanup leaves the tables of others as they were, to the byte', async () => {
  await expectApply(['cleanup'], 0);
  assertSame('the other tables', saveOthers(), others);
});
suite.finish();
