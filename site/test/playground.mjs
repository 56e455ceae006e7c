// Checks the playground: it compiles what the program compiles, sends nothing, runs nothing that is pasted, and works offline.
// @ts-check
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync, gzipSync, inflateRawSync } from 'node:zlib';
import { faintTexts, open, overflowOf, screens } from './look.mjs';

const root = join(import.meta.dirname, '../..');

/** Limit on the bytes of the folder, uncompressed. */
const mostBytes = 1_240_000;

/** @typedef {import('playwright-core').Page} Page */

/** @param {import('./look.mjs').Tools} tools */
export async function checkPlayground({ check, context, folder, origin, requests, pictures }) {
  /** @type {string[]} */
  const asked = [];
  context.on('request', (request) => asked.push(request.url()));
  const url = `${origin}/playground/`;
  const example = readmeExample();

  await check('the folder is small', () => {
    const own = join(folder, 'playground');
    const files = readdirSync(own).map((name) => join(own, name));
    const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
    const gzipped = files.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
    console.log(`     ${bytes} bytes, ${gzipped} with gzip`);
    assert.ok(bytes < mostBytes, `${bytes} bytes`);
  });

  await check('it opens with the example of README.md, and results beside it', async () => {
    const { page, errors } = await open(context, url);
    await page.waitForSelector('.way');
    assert.equal(await page.inputValue('#manifests'), example);
    assert.match(await textOf(page, '#description'), /10\.244\.1\.10:8080 {2}worker-1 {2}used/);
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('it compiles what the program compiles, byte for byte, in each mode', async () => {
    const { page } = await open(context, url);
    await page.waitForSelector('.way');
    await page.click('#tab-files');
    assert.equal(await page.inputValue('#file'), 'ipvsadm.restore');
    for (const mode of ['iptables', 'ipvs', 'nftables']) {
      const expected = compileByProgram(example, mode);
      await page.selectOption('#mode', mode);
      await summarySays(page, `mode ${mode}`);
      const files = await page.$$eval('#file option', (options) =>
        options.map((each) => each.getAttribute('value') ?? ''),
      );
      assert.deepEqual(files.toSorted(), [...expected.keys()].toSorted());
      for (const file of files) {
        await page.selectOption('#file', file);
        assert.equal(await textOf(page, '#content'), expected.get(file), `${mode} ${file}`);
      }
    }
    await page.close();
  });

  await check('an error has a line and a column, and leads to them', async () => {
    const { page, errors } = await open(context, url);
    await fill(page, '#manifests', example.replace('nodePort: 30080', 'nodePort: 99999'));
    await page.waitForSelector('#problems .error button');
    const place = await textOf(page, '#problems .error button');
    await page.click('#problems .error button');
    const selected = await page.$eval('#manifests', (element) => {
      const { value, selectionStart, selectionEnd } = /** @type {HTMLTextAreaElement} */ (element);
      const before = value.slice(0, selectionStart).split('\n');
      return {
        place: `${before.length}:${(before.at(-1) ?? '').length + 1}`,
        text: value.slice(selectionStart, selectionEnd),
        isFocused: document.activeElement === element,
      };
    });
    assert.deepEqual(selected, { place, text: '99999', isFocused: true });
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('a file can be opened, and dropped anywhere', async () => {
    const { page, errors } = await open(context, url);
    const file = (/** @type {string} */ name) => ({
      name: `${name}.yaml`,
      mimeType: 'text/yaml',
      buffer: Buffer.from(example.replaceAll('nginx', name)),
    });
    await page.setInputFiles('#open', [file('opened'), file('second')]);
    await page.waitForFunction(() => document.querySelector('#problems')?.textContent !== '');
    const opened = await page.inputValue('#manifests');
    assert.ok(opened.includes('name: opened') && opened.includes('---\n') && opened.includes('name: second'));
    await page.evaluate(
      (text) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([text], 'dropped.yaml'));
        document
          .querySelector('footer')
          ?.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      },
      example.replaceAll('nginx', 'dropped'),
    );
    await page.waitForFunction(() => document.querySelector('#description')?.textContent?.includes('default/dropped'));
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('manifests from git get what they lack, unless that is switched off', async () => {
    const { page } = await open(context, url);
    const ports = '[{ port: 80 }]';
    await fill(
      page,
      '#manifests',
      `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: ${ports} }\n`,
    );
    await page.waitForFunction(() => /assumed/.test(document.querySelector('#problems')?.textContent ?? ''));
    assert.match(await textOf(page, '#summary'), /node node-1 \(assumed\)/);
    await page.uncheck('#assume');
    await summarySays(page, 'any node');
    await page.close();
  });

  await check('a trace says what the program says, in text and as a picture', async () => {
    const { page, errors } = await open(context, url);
    await page.click('#tab-trace');
    await page.fill('#from', 'external');
    await page.fill('#to', '192.168.50.11:30080');
    await page.waitForFunction(() =>
      document.querySelector('#trace-text')?.textContent?.startsWith('tcp to 192.168.50.11:30080 ('),
    );
    const expected = runProgram(example, [
      'trace',
      '--proxy-mode',
      'ipvs',
      '--from',
      'external',
      '--to',
      '192.168.50.11:30080',
    ]);
    assert.equal(withoutPlaces(await textOf(page, '#trace-text')), withoutPlaces(expected));
    await page.waitForFunction(() => {
      const picture = document.querySelector('#trace-picture');
      return picture instanceof HTMLImageElement && picture.naturalWidth > 0 && picture.alt !== '';
    });
    await page.fill('#to', 'svc/nothing');
    await page.waitForFunction(() => /no Service/.test(document.querySelector('#trace-text')?.textContent ?? ''));
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('it compares two modes, and two versions of the manifests', async () => {
    const { page, errors } = await open(context, url);
    await page.selectOption('#mode', 'iptables');
    await page.click('#tab-compare');
    await page.selectOption('#against', 'nftables');
    await page.waitForFunction(() => document.querySelector('#comparison')?.textContent?.startsWith('iptables →'));
    const expected = runProgram(example, ['equivalence', 'iptables', 'nftables', '-f'], 1).split('\n')[0];
    assert.equal((await textOf(page, '#comparison')).split('\n')[0], expected);
    await page.selectOption('#against', 'manifests');
    await fill(page, '#second', example.replace('ready: false', 'ready: true'));
    await page.waitForFunction(() => /10\.244\.2\.11/.test(document.querySelector('#comparison')?.textContent ?? ''));
    await fill(page, '#second', 'kind: [');
    await page.waitForSelector('#second-problems .error');
    // This release may lack the other mode.
    await page.selectOption('#release', '1.30');
    await page.selectOption('#against', 'nftables');
    await page.waitForFunction(() => /nftables/.test(document.querySelector('#comparison')?.textContent ?? ''));
    assert.match(await textOf(page, '#comparison'), /"Kubernetes"/);
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('what was typed survives a reload and the example, and no view is stale', async () => {
    const { page, errors } = await open(context, url);
    const offered = () => page.$$eval('#against option', (all) => all.map((each) => each.getAttribute('value')));
    for (const mode of ['iptables', 'nftables']) {
      await page.selectOption('#mode', mode);
      assert.ok(!(await offered()).includes(mode), mode);
    }
    const renamed = example.replaceAll('nginx', 'shop');
    await fill(page, '#manifests', renamed);
    await page.waitForFunction(
      () => /** @type {HTMLInputElement} */ (document.querySelector('#to')).value === 'svc/default/shop:80',
    );
    await page.reload();
    await summarySays(page, 'mode nftables');
    assert.equal(await page.inputValue('#manifests'), renamed);
    await page.click('#restore');
    await page.waitForFunction(
      (text) => /** @type {HTMLTextAreaElement} */ (document.querySelector('#manifests')).value === text,
      example,
    );
    await page.focus('#manifests');
    await page.keyboard.press('Control+z');
    assert.equal(await page.inputValue('#manifests'), renamed);
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('nothing is stale: an error leaves no result of an earlier text', async () => {
    const { page, errors } = await open(context, url);
    const shown = () =>
      page.evaluate(() => {
        const text = (/** @type {string} */ id) => document.querySelector(id)?.textContent ?? 'nothing';
        const options = (/** @type {string} */ id) => document.querySelectorAll(`${id} option`).length;
        return [
          ...['#ways', '#matrix', '#description', '#content', '#trace-text', '#comparison'].map(text),
          ...['#service', '#file', '#senders', '#targets'].map(options),
          document.querySelector('#trace-picture[src]:not([hidden])') === null,
        ];
      });
    const none = ['', '', '', '', '', '', 0, 0, 0, 0, true];
    for (const view of ['services', 'files', 'trace', 'compare']) {
      await page.click(`#tab-${view}`);
      await summarySays(page, 'on node worker-1');
      await idle(page);
      assert.notDeepEqual(await shown(), none, view);
      for (const wrong of ['kind: [', 'a'.repeat(8_000_001)]) {
        await fill(page, '#manifests', wrong);
        await summarySays(page, wrong.length > 100 ? 'More than 8 MB' : 'Nothing is shown until the errors are gone');
        // A change of width draws the present results again.
        await page.setViewportSize({ width: 700 + (wrong.length % 100), height: 900 });
        await page.waitForTimeout(100);
        const found = await shown();
        // Views that are not in front are asked again when they are shown.
        assert.deepEqual(found.slice(0, 3), none.slice(0, 3), view);
        if (view === 'files') assert.equal(found[3], '');
        if (view === 'trace') assert.equal(found[4], '');
        if (view === 'compare') assert.equal(found[5], '');
        assert.deepEqual(found.slice(6), none.slice(6), view);
      }
      assert.equal(await page.locator('#problems li').count(), 0, 'problems of another text');
      await fill(page, '#manifests', example);
    }
    await page.close();
    assert.deepEqual(errors, []);
  });

  await check('the Service of a trace follows the text, also through an error', async () => {
    const { page } = await open(context, url);
    await page.click('#tab-trace');
    const to = (/** @type {string} */ wanted) =>
      page.waitForFunction(
        (text) => /** @type {HTMLInputElement} */ (document.querySelector('#to')).value === text,
        wanted,
      );
    await to('svc/default/nginx:80');
    await page.fill('#from', 'pod');
    // An answer that comes now must not replace what is being typed.
    await fill(page, '#manifests', `# again\n${example}`);
    await page.waitForTimeout(100);
    await page.fill('#from', 'remote-pod');
    await page.waitForTimeout(500);
    await idle(page);
    assert.equal(await page.inputValue('#from'), 'remote-pod');
    await page.fill('#from', 'pod');
    await page.waitForFunction(() => /from a pod/.test(document.querySelector('#trace-text')?.textContent ?? ''));
    await fill(page, '#manifests', 'kind: [');
    await page.waitForSelector('#problems .error');
    await fill(page, '#manifests', example.replaceAll('nginx', 'shop'));
    await to('svc/default/shop:80');
    await page.waitForFunction(() => /default\/shop/.test(document.querySelector('#trace-text')?.textContent ?? ''));
    await page.close();
  });

  await check('a link holds all that is in the page', async () => {
    const { page } = await open(context, url);
    const text = example.replace('nginx', 'grüße-🦊').replaceAll('nginx', 'shop').replace('grüße-🦊', 'shop');
    await fill(page, '#manifests', `# ü 🦊 </script>\n${text}`);
    await page.selectOption('#mode', 'nftables');
    await page.selectOption('#release', '1.35');
    await page.click('#tab-trace');
    await page.fill('#from', 'pod');
    await page.waitForTimeout(300);
    await page.click('#share');
    await page.waitForFunction(() => /** @type {HTMLInputElement} */ (document.querySelector('#link')).value !== '');
    const link = await page.inputValue('#link');
    await page.selectOption('#release', '1.36');
    assert.ok(await page.isHidden('#shared'), 'the link of another page state is gone');
    // The address bar follows what is typed.
    await fill(page, '#manifests', `# today\n${text}`);
    await page.waitForFunction((earlier) => location.hash.length > 1 && location.href !== earlier, link);
    await page.waitForTimeout(600);
    const today = JSON.parse(inflateRawSync(Buffer.from(new URL(page.url()).hash.slice(1), 'base64url')).toString());
    assert.deepEqual([today.manifests, today.release], [`# today\n${text}`, '1.36']);
    await page.close();
    const before = requests.length;
    const { page: other, errors } = await open(context, 'about:blank');
    await other.goto(link);
    await summarySays(other, 'mode nftables');
    assert.equal(await other.inputValue('#manifests'), `# ü 🦊 </script>\n${text}`);
    assert.deepEqual(
      [await other.inputValue('#release'), await other.inputValue('#from'), await other.isVisible('#view-trace')],
      ['1.35', 'pod', true],
    );
    assert.ok(requests.slice(before).every((each) => !each.url.includes('#')));
    assert.deepEqual(errors, []);
    await other.close();
  });

  await check('a link that is broken, too long, or a bomb opens the example', async () => {
    const bomb = deflateRawSync(Buffer.alloc(60_000_000, 32), { level: 9 }).toString('base64url').slice(0, 59_000);
    for (const fragment of ['%00', 'AAAA', 'x'.repeat(100_000), bomb, pack({ manifests: 1 }), pack(null)]) {
      const { page, errors } = await open(context, `${url}#${fragment}`);
      await page.waitForSelector('.way');
      assert.equal(await page.inputValue('#manifests'), example);
      assert.match(await textOf(page, '#link-note'), /broken or too long/);
      assert.deepEqual(errors, []);
      await page.close();
    }
  });

  await check('nothing of what is pasted or linked runs', async () => {
    const hostile = hostileManifests();
    const state = { second: hostile, node: '', mode: 'iptables', release: '1.37', assume: true, service: '', file: '' };
    const packet = {
      from: '<img src=x onerror=alert(1)>',
      to: 'svc/<svg onload=alert(1)>',
      protocol: '',
      against: 'manifests',
    };
    for (const view of ['services', 'files', 'trace', 'compare']) {
      const link = pack({ ...state, ...packet, manifests: hostile, view });
      const { page, errors } = await open(context, `${url}#${link}`);
      await page.waitForSelector('#problems li');
      await page.waitForTimeout(300);
      const found = await page.evaluate(() => ({
        ran: 'pwned' in window,
        images: [...document.images].filter(({ id }) => id !== 'trace-picture').length,
        scripts: document.scripts.length,
        handlers: [...document.querySelectorAll('*')].filter((each) =>
          each.getAttributeNames().some((name) => name.startsWith('on')),
        ).length,
      }));
      assert.deepEqual([found, errors], [{ ran: false, images: 0, scripts: 2, handlers: 0 }, []], view);
      await page.close();
    }
  });

  await check('the page forbids what it does not need', async () => {
    const { page } = await open(context, url);
    await page.waitForSelector('.way');
    const outcome = await page.evaluate(async () => {
      const sent = await fetch('/playground/style.css').then(
        () => 'sent',
        () => 'refused',
      );
      try {
        document.body.innerHTML += '<p>';
        return [sent, 'html'];
      } catch {
        return [sent, 'no html'];
      }
    });
    assert.deepEqual(outcome, ['refused', 'no html']);
    await page.close();
  });

  await check('a large paste does not stop the page', async () => {
    const { page, errors } = await open(context, url);
    await page.waitForSelector('.way');
    const one = Array.from({ length: 3_000 }, (_, i) => serviceNumber(i)).join('---\n');
    const many = one.padEnd(5_000_000, `#${' '.repeat(78)}\n`);
    // A plain text field also takes long for so much text.
    const bare = await page.evaluate((text) => {
      const field = document.createElement('textarea');
      field.wrap = 'off';
      document.body.append(field);
      const start = performance.now();
      field.value = text;
      const { scrollHeight } = field;
      field.remove();
      return scrollHeight > 0 ? performance.now() - start : 0;
    }, many);
    await page.evaluate(() => {
      const since = { last: performance.now(), longest: 0 };
      Object.assign(window, { since });
      setInterval(() => {
        const now = performance.now();
        since.longest = Math.max(since.longest, now - since.last);
        since.last = now;
      }, 20);
    });
    await fill(page, '#manifests', many);
    await page.waitForSelector('.results[aria-busy=true]');
    // The page answers while the compiler works.
    await page.click('#tab-files');
    assert.equal(await page.getAttribute('#tab-files', 'aria-selected'), 'true');
    await summarySays(page, '3,000 Services');
    const longest = await page.evaluate(() => Number(Reflect.get(Reflect.get(window, 'since'), 'longest')));
    console.log(
      `     5 MB: the page stood still for ${Math.round(longest)} ms; the field alone takes ${Math.round(bare)} ms`,
    );
    assert.ok(longest < 2 * bare + 1_000, `${longest} ms`);
    assert.match(await textOf(page, '#kept'), /too large to be kept/);
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('messages name what the page has, and no flags', async () => {
    const { page } = await open(context, url);
    const service = (/** @type {string} */ spec) =>
      `{ apiVersion: v1, kind: Service, metadata: { name: a }, spec: ${spec} }\n`;
    const texts = [
      service('{ ports: [{ port: 80 }] }'),
      service('{ ports: [{ port: 99999 }] }'),
      `${example}---\n{ apiVersion: v1, kind: Node, metadata: { name: worker-2 } }\n`,
      example.replace('192.168.50.11', '10.96.0.80'),
      '{ apiVersion: v1, kind: List, items: [] }\n',
      'a: 1\n',
    ];
    for (const mode of ['ipvs', 'nftables']) {
      await page.selectOption('#mode', mode);
      await page.selectOption('#release', mode === 'ipvs' ? '1.37' : '1.30');
      for (const assume of [true, false]) {
        await page.setChecked('#assume', assume);
        for (const text of texts) {
          await fill(page, '#manifests', text);
          await page.waitForTimeout(300);
          await idle(page);
          const said = await page.$$eval('#problems li', (items) => items.map((item) => item.textContent ?? ''));
          const flags = said.flatMap((each) => each.match(/.{0,30}--[a-z-]+/g) ?? []);
          const known = flags.filter((each) => /--(?:node|proxy-mode|kubernetes-version|(?:no-)?assume)\b/.test(each));
          assert.deepEqual(known, [], text);
          assert.deepEqual(
            flags.filter((each) => !each.includes("the program's ")),
            [],
            text,
          );
          assert.doesNotMatch(said.join(' '), /\bwith -f\b/);
        }
      }
    }
    await page.close();
  });

  await check('labels are whole at any width', async () => {
    const long = 'a-service-with-a-very-long-name-of-sixty-three-characters-in-all';
    const { page } = await open(context, url);
    await fill(page, '#manifests', example.replaceAll('nginx', long.slice(0, 63)));
    for (const width of [320, 375, 600, 861, 1024, 1440, 2000]) {
      await page.setViewportSize({ width, height: 900 });
      for (const mode of ['iptables', 'nftables']) {
        await page.selectOption('#mode', mode);
        await summarySays(page, `mode ${mode}`);
        await idle(page);
        await page.waitForSelector('.way text');
        const cut = await page.$$eval('.way g', (groups) =>
          groups.flatMap((each) => {
            const box = each.querySelector('rect')?.getBoundingClientRect();
            return [...each.querySelectorAll('text')].flatMap((label) => {
              const { left, right, top, bottom } = label.getBoundingClientRect();
              const fits = box && left >= box.left && right <= box.right && top >= box.top && bottom <= box.bottom + 1;
              return fits && !label.textContent?.includes('…') ? [] : [label.textContent];
            });
          }),
        );
        assert.deepEqual([cut, await overflowOf(page)], [[], 0], `${width} ${mode}`);
      }
    }
    await page.click('#tab-trace');
    for (const width of [320, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(500);
      await idle(page);
      const { natural, shown } = await page.$eval('#trace-picture', (element) => {
        const image = /** @type {HTMLImageElement} */ (element);
        return { natural: image.naturalWidth, shown: image.clientWidth };
      });
      assert.equal(natural, shown, 'the picture is drawn for the width that it has');
    }
    await page.close();
  });

  await check('the theme is the one that was chosen on the site', async () => {
    const seen = [];
    for (const chosen of ['dark', 'light', 'auto']) {
      const { page } = await open(context, url);
      await page.evaluate((value) => localStorage.setItem('vitepress-theme-appearance', value), chosen);
      await page.reload();
      await page.click('#tab-trace');
      await page.waitForSelector('#trace-picture[src]');
      await page.waitForTimeout(300);
      const behind = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      // A corner of the picture shows its background.
      const clip = await page.locator('#trace-picture').boundingBox();
      assert.ok(clip);
      const png = await page.screenshot({ clip: { x: clip.x + 100, y: clip.y + 4, width: 1, height: 1 } });
      seen.push([behind, png.toString('base64')]);
      await page.close();
    }
    const [dark, light, auto] = seen;
    assert.deepEqual([dark?.[0], light?.[0]], ['rgb(13, 17, 23)', 'rgb(255, 255, 255)']);
    assert.notEqual(dark?.[1], light?.[1], 'the picture has the same colours in both themes');
    assert.deepEqual(auto, light, 'the system of this test is light');
  });

  await check('it works without a network', async () => {
    const { page } = await open(context, url);
    await page.waitForFunction(() => /offline/.test(document.querySelector('#offline')?.textContent ?? ''));
    await context.setOffline(true);
    try {
      const before = requests.length;
      await page.reload();
      await page.waitForSelector('.way');
      await page.selectOption('#mode', 'nftables');
      await summarySays(page, 'mode nftables');
      // The browser may look for a newer service worker at any time.
      const others = requests.slice(before).filter(({ url: path }) => path !== '/playground/service-worker.js');
      assert.deepEqual(others, []);
    } finally {
      await context.setOffline(false);
    }
    await page.close();
  });

  await check('it asks for its own files, and for nothing else', () => {
    const own = new Set(readdirSync(join(folder, 'playground')).map((name) => `/playground/${name}`));
    const others = requests.filter(
      ({ method, url: path }) => method !== 'GET' || !(own.has(path) || path === '/playground/'),
    );
    assert.deepEqual(others, []);
    assert.deepEqual(
      asked.filter((each) => !each.startsWith(`${origin}/playground/`) && !each.startsWith('blob:')),
      [],
    );
    assert.ok(asked.some((each) => each.endsWith('/worker.js')));
  });

  await check('fields have names, and keys move between tabs', async () => {
    const { page } = await open(context, url);
    await page.waitForSelector('.way');
    const unnamed = await page.$$eval('input, select, textarea, button', (fields) =>
      fields
        .filter((field) => {
          const labels = 'labels' in field && field.labels instanceof NodeList ? [...field.labels] : [];
          const words = [
            field.getAttribute('aria-label'),
            field.textContent,
            ...labels.map((label) => label.textContent),
          ];
          return field.tagName === 'BUTTON'
            ? !words.some((each) => each?.trim())
            : !field.getAttribute('aria-label') && labels.length === 0;
        })
        .map((field) => field.outerHTML),
    );
    assert.deepEqual(unnamed, []);
    await page.focus('#tab-services');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'tab-files');
    assert.ok(await page.isVisible('#view-files'));
    await page.keyboard.press('ArrowLeft');
    assert.ok(await page.isVisible('#view-services'));
    // From the start of the page, the Tab key reaches everything in order.
    const reached = [];
    await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement).blur());
    await page.focus('.skip');
    for (let i = 0; i < 14; i++) {
      await page.keyboard.press('Tab');
      reached.push(await page.evaluate(() => document.activeElement?.id ?? ''));
    }
    const order = [
      'open',
      'restore',
      'share',
      'node',
      'mode',
      'release',
      'assume',
      'manifests',
      'tab-services',
      'service',
    ];
    assert.deepEqual(
      reached.filter((id) => order.includes(id)),
      order,
    );
    await page.close();
  });

  for (const screen of screens) {
    await check(`nothing overflows or is faint: ${screen.name}`, async () => {
      const { page, errors } = await open(context, url, screen);
      await page.waitForSelector('.way');
      for (const view of ['services', 'files', 'trace', 'compare']) {
        await page.click(`#tab-${view}`);
        await page.waitForTimeout(300);
        if (pictures !== undefined) {
          await page.screenshot({ path: join(pictures, `playground-${view}-${screen.name}.png`), fullPage: true });
        }
        assert.deepEqual([await overflowOf(page), await faintTexts(page, 'body'), errors], [0, [], []], view);
      }
      await page.close();
    });
  }
}

/** @param {Page} page @param {string} selector */
async function textOf(page, selector) {
  return (await page.textContent(selector)) ?? '';
}

/** @param {Page} page @param {string} words */
async function summarySays(page, words) {
  await page.waitForFunction((each) => document.querySelector('#summary')?.textContent?.includes(each), words);
}

/** Waits until everything is answered. @param {Page} page */
async function idle(page) {
  await page.waitForFunction(() => document.querySelector('.results')?.getAttribute('aria-busy') === 'false');
}

/** Pastes a text. @param {Page} page @param {string} selector @param {string} text */
async function fill(page, selector, text) {
  await page.$eval(
    selector,
    (element, value) => {
      /** @type {HTMLTextAreaElement} */ (element).value = value;
      element.dispatchEvent(new Event('input'));
    },
    text,
  );
}

/** @param {unknown} state */
function pack(state) {
  return deflateRawSync(JSON.stringify(state)).toString('base64url');
}

/** Returns the manifests in README.md's first example. */
function readmeExample() {
  const [, text = ''] =
    /cat >svc\.yaml <<'END'\n(.*?)^END$/ms.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
  assert.match(text, /kind: Service/);
  return text;
}

/**
 * @param {string} manifests
 * @param {string[]} args
 * @param {number} [expected]
 */
function runProgram(manifests, args, expected = 0) {
  const work = mkdtempSync(join(tmpdir(), 'kpc-playground-'));
  try {
    const file = join(work, 'manifests.yaml');
    writeFileSync(file, manifests);
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'bin/kpc.js'), ...args, file], {
      cwd: work,
      encoding: 'utf8',
    });
    assert.equal(status, expected, stderr);
    return stdout;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** @param {string} manifests @param {string} mode */
function compileByProgram(manifests, mode) {
  const target = mkdtempSync(join(tmpdir(), 'kpc-playground-'));
  try {
    runProgram(manifests, ['compile', '-q', '--proxy-mode', mode, '-o', join(target, 'bundle'), '-f']);
    const names = readdirSync(join(target, 'bundle'));
    return new Map(names.map((name) => [name, readFileSync(join(target, 'bundle', name), 'utf8')]));
  } finally {
    rmSync(target, { recursive: true, force: true });
  }
}

/** Removes the places in files, because the folders differ. @param {string} text */
function withoutPlaces(text) {
  return text.replaceAll(/ {2}\([^()]*manifests\.yaml:[\d:]+\)/g, '');
}

/** Returns manifests with markup wherever an author may write text. */
function hostileManifests() {
  const markup = '<img src=x onerror="window.pwned=1">';
  const quoted = JSON.stringify(markup);
  return [
    `{ apiVersion: v1, kind: Service, metadata: { name: ${quoted} }, spec: { ports: [{ port: 80 }] } }`,
    `{ apiVersion: v1, kind: ${quoted}, metadata: { name: a } }`,
    `{ apiVersion: v1, kind: Service, metadata: { name: b, annotations: { ${quoted}: ${quoted} } }, spec: { type: ExternalName, externalName: ${quoted} } }`,
    `{ apiVersion: v1, kind: Service, metadata: { name: c }, spec: { clusterIP: ${quoted}, ports: [{ name: ${quoted}, port: ${quoted} }] } }`,
    `{ apiVersion: v1, kind: Node, metadata: { name: ${quoted} } }`,
    `"\\e[31m${'</textarea><script>window.pwned=1</script>'}": [`,
  ].join('\n---\n');
}

/** @param {number} i */
function serviceNumber(i) {
  const address = `10.96.${Math.floor(i / 250)}.${(i % 250) + 1}`;
  const [name, ports] = [`web-${i}`, '[{ port: 80 }]'];
  return [
    `{ apiVersion: v1, kind: Service, metadata: { name: ${name} }, spec: { clusterIP: ${address}, ports: ${ports} } }\n---\n`,
    `{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: { name: ${name}, labels: { kubernetes.io/service-name: ${name} } },`,
    ` addressType: IPv4, ports: ${ports}, endpoints: [{ addresses: [10.244.1.${(i % 250) + 1}] }] }\n`,
  ].join('');
}
