// Checks the playground with a node's output. It must say what kpc describe and kpc trace say about the same text.
// @ts-check
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, overflowOf } from './look.mjs';

const root = join(import.meta.dirname, '../..');

/** @typedef {import('playwright-core').Page} Page */

/** @param {string} folder @param {readonly string[]} files */
function dumpOf(folder, files) {
  return files.map((file) => readFileSync(join(root, 'fixtures/dumps', folder, file), 'utf8')).join('');
}

const ipvsFolder = 'kube-proxy-ipvs-loadbalancer-source-ranges';
const ipvs = dumpOf(ipvsFolder, ['iptables-save', 'ipset-save', 'ipvsadm-save', 'ip-addr.json']);
const ipvsManifests = dumpOf(ipvsFolder, ['cluster.yaml']);
const listed = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.0.1:443 rr
  -> 192.168.50.10:6443           Masq    1      2          0
`;
const addresses = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000
    link/ether 52:54:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 192.168.50.11/24 brd 192.168.50.255 scope global eth0
       valid_lft forever preferred_lft forever
`;
const bound = `3: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN group default
    link/ether 6a:91:2b:5f:01:02 brd ff:ff:ff:ff:ff:ff
    inet 10.96.0.1/32 scope global kube-ipvs0
       valid_lft forever preferred_lft forever
`;
const log = `I0510 10:00:00.000001       1 server_linux.go:53] "Using iptables proxy"
I0510 10:00:00.000002       1 server.go:1012] "Version info" version="v1.34.1"
E0510 10:00:01.000002       1 proxier.go:1537] "Failed to execute iptables-restore" err="exit status 4"
`;
const flow =
  'udp      17 25 src=10.244.1.20 dst=10.96.0.10 sport=40000 dport=53 [UNREPLIED] src=10.244.2.9 dst=10.244.1.20 sport=53 dport=40000 mark=0 use=1\n';

/** Texts that a reader may paste, each with a packet to trace. */
const pasted = [
  {
    name: 'iptables-save',
    text: dumpOf('kube-proxy-iptables-session-affinity', ['iptables-save', 'ip6tables-save']),
    packet: { from: '192.0.2.7', to: '10.102.128.4:3080' },
  },
  {
    name: 'nft list ruleset',
    text: dumpOf('kube-proxy-nftables-dual-stack-nodeport', ['nft-ruleset']),
    packet: { from: 'external', to: 'svc/prod/web' },
  },
  { name: 'IPVS mode, whole', text: ipvs, packet: { from: 'pod', to: '10.96.0.1:443' } },
  { name: 'ipvsadm -Ln', text: listed, packet: { from: 'pod', to: '10.96.0.1:443' } },
  { name: 'ipvsadm -Ln and ip addr', text: listed + addresses + bound, packet: { from: 'node', to: '10.96.0.1:443' } },
];

/** Texts that show no Service. */
const others = [
  { name: 'ip addr', text: addresses, says: /the dump shows no Service/ },
  { name: 'the log of kube-proxy', text: log, says: /kube-proxy's log: 3 lines/ },
  { name: 'conntrack -L', text: flow, says: /1 UDP flow|the dump shows no Service/ },
];

/** @param {import('./look.mjs').Tools} tools */
export async function checkDumps({ check, context, origin, pictures }) {
  const url = `${origin}/playground/`;

  for (const { name, text, packet } of pasted) {
    await check(`what a node prints is described and traced as kpc does: ${name}`, async () => {
      const { page, errors } = await open(context, url);
      await paste(page, '#manifests', text);
      await isRead(page);
      await idle(page);
      assert.equal(await textOf(page, '#description'), runProgram(text, ['describe']).stdout);
      assert.ok(await page.isHidden('#settings'), 'a dump has the mode that it has');
      assert.ok(await page.isHidden('#tab-files'), 'a dump is compiled to no files');
      const names = await page.$$eval('#service option', (all) => all.map((each) => each.getAttribute('value') ?? ''));
      for (const service of names.slice(1, 4)) {
        await page.selectOption('#service', service);
        await idle(page);
        const { stdout } = runProgram(text, ['describe', service.replace(/^node port /, '')]);
        assert.equal(await textOf(page, '#description'), stdout);
        assert.notEqual(await textOf(page, '#matrix'), '');
      }
      await page.click('#tab-trace');
      await page.fill('#from', packet.from);
      await page.fill('#to', packet.to);
      await page.waitForTimeout(300);
      await idle(page);
      const expected = runProgram(text, ['trace', '--from', packet.from, '--to', packet.to]).stdout;
      // The page names its control where the program names a flag.
      assert.equal(withoutName(await textOf(page, '#trace-text')), withoutName(expected.replaceAll('--to ', '"To" ')));
      assert.deepEqual(errors, []);
      await page.close();
    });
  }

  for (const { name, text, says } of others) {
    await check(`what shows no Service leads to what it does show, or to a sentence: ${name}`, async () => {
      const { page, errors } = await open(context, url);
      await paste(page, '#manifests', text);
      await isRead(page);
      await idle(page);
      assert.match(await textOf(page, '#description'), says);
      assert.deepEqual(errors, []);
      await page.close();
    });
  }

  await check('the table of a dump fits into the page, with its endpoints', async () => {
    const { page, errors } = await open(context, url);
    const servers = Array.from({ length: 40 }, (_, n) => {
      const address = `[fd00:10:96:0:1234:5678:9abc:${n.toString(16)}]:443`;
      return `TCP  ${address} rr\n  -> [fd00:10:244:0:aaaa:bbbb:cccc:${n.toString(16)}]:6443 Masq    1      0          0\n`;
    });
    await paste(page, '#manifests', `${listed}${servers.join('')}`);
    await isRead(page);
    await idle(page);
    assert.match(await textOf(page, '#description'), /ENDPOINTS/);
    const room = await page.$eval('#description', (box) => [box.scrollWidth, box.clientWidth]);
    assert.ok((room[0] ?? 0) <= (room[1] ?? 0), `${room[0]} pixels in ${room[1]}`);
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('a dump is compared with manifests, which name its Services, and never with a mode', async () => {
    const { page, errors } = await open(context, url);
    await paste(page, '#manifests', ipvs);
    await page.click('#tab-compare');
    await page.waitForFunction(() =>
      /Paste what to compare with/.test(document.querySelector('#comparison')?.textContent ?? ''),
    );
    const offered = await page.$$eval('#against option', (all) => all.map((each) => each.getAttribute('value')));
    assert.deepEqual(offered, ['manifests']);
    const name = 'default/nginx';
    await page.click('#tab-services');
    assert.ok(!(await textOf(page, '#description')).includes(name));
    assert.match(await textOf(page, '#problems'), /add manifests in "Compare" to name them/);
    await page.click('#tab-compare');
    await paste(page, '#second', ipvsManifests);
    await page.waitForFunction(() => /Service port/.test(document.querySelector('#comparison')?.textContent ?? ''));
    await idle(page);
    assert.match(await textOf(page, '#comparison'), /changed|same|differ/);
    await page.click('#tab-services');
    await idle(page);
    assert.ok((await textOf(page, '#description')).includes(name), 'the manifests name the Services of the dump');
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('nothing of a dump runs', async () => {
    const { page, errors } = await open(context, url);
    const markup = '<img src=x onerror=window.pwned=1></textarea><script>window.pwned=1</script>';
    const hostile = `*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC-ABCDEFGHIJKLMNOP - [0:0]
-A KUBE-SERVICES -d 10.96.0.80/32 -p tcp -m comment --comment "a/${markup}:b cluster IP" -m tcp --dport 80 -j KUBE-SVC-ABCDEFGHIJKLMNOP
COMMIT
${markup}
\u001b]0;title\u0007\u001b[31m
`;
    await paste(page, '#manifests', hostile);
    await isRead(page);
    for (const view of ['services', 'trace', 'compare']) {
      await page.click(`#tab-${view}`);
      await page.waitForTimeout(300);
    }
    await paste(page, '#second', hostile);
    await page.waitForTimeout(500);
    const found = await page.evaluate(() => ({
      ran: 'pwned' in window,
      images: [...document.images].filter(({ id }) => id !== 'trace-picture').length,
      scripts: document.scripts.length,
    }));
    assert.deepEqual([found, errors], [{ ran: false, images: 0, scripts: 2 }, []]);
    await page.close();
  });

  await check('on a phone, a dump gives an answer, and nothing is beside the screen', async () => {
    const { page, errors } = await open(context, url, { name: 'phone', width: 375, scheme: 'dark' });
    await paste(page, '#manifests', ipvs);
    await isRead(page);
    await idle(page);
    assert.match(await textOf(page, '#description'), /10\.98\.154\.163/);
    for (const view of ['services', 'trace', 'compare']) {
      await page.click(`#tab-${view}`);
      await page.waitForTimeout(300);
      await idle(page);
      if (pictures !== undefined) {
        await page.screenshot({ path: join(pictures, `dump-${view}-phone.png`), fullPage: true });
      }
      assert.equal(await overflowOf(page), 0, view);
    }
    assert.deepEqual(errors, []);
    await page.close();
  });
}

/** @param {Page} page @param {string} selector */
async function textOf(page, selector) {
  return (await page.textContent(selector)) ?? '';
}

/** Waits until a dump is read. @param {Page} page */
async function isRead(page) {
  await page.waitForFunction(() => document.querySelector('#summary')?.textContent?.startsWith('What a node printed'));
}

/** Waits until everything is answered. @param {Page} page */
async function idle(page) {
  await page.waitForFunction(() => document.querySelector('.results')?.getAttribute('aria-busy') === 'false');
}

/** @param {Page} page @param {string} selector @param {string} text */
async function paste(page, selector, text) {
  await page.$eval(
    selector,
    (element, value) => {
      /** @type {HTMLTextAreaElement} */ (element).value = value;
      element.dispatchEvent(new Event('input'));
    },
    text,
  );
}

/** Removes what a trace calls the dump, and the words around flags. @param {string} text */
function withoutName(text) {
  return text.replaceAll("the program's --", '--').replace(/, on \S+(?: dump)?(?= in |\n)/, '');
}

/** @param {string} text @param {readonly string[]} args */
function runProgram(text, args) {
  const work = mkdtempSync(join(tmpdir(), 'kpc-dump-'));
  try {
    const file = join(work, 'node.txt');
    writeFileSync(file, text);
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'bin/kpc.js'), ...args, '-f', file], {
      cwd: work,
      encoding: 'utf8',
    });
    assert.ok(status === 0 || status === 1, stderr);
    return { stdout, stderr };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
