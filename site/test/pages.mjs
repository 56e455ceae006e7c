// Checks the pages of docs: links lead somewhere, and nothing overflows or fails.
// @ts-check
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { addressOf, pageFiles as files } from '../.vitepress/pages.mjs';
import { faintTexts, open, overflowOf, screens } from './look.mjs';

const homes = ['/', '/docs/zh-CN/'];

/** @param {import('./look.mjs').Tools} tools */
export async function checkPages({ check, context, folder, origin, pictures }) {
  await check('links lead to what is there', () => {
    const dead = [...files.map(addressOf), ...homes].flatMap((address) => deadLinks(folder, address));
    assert.deepEqual(dead, []);
  });

  for (const file of files) {
    await check(`${file} shows on a wide and on a narrow screen`, async () => {
      for (const screen of screens.filter(({ name }) => name === 'wide-light' || name === 'narrow-dark')) {
        const { page, errors } = await open(context, origin + addressOf(file), screen);
        await page.waitForSelector('h1');
        const broken = await page.evaluate(() =>
          [...document.images]
            .filter(({ complete, naturalWidth }) => complete && naturalWidth === 0)
            .map(({ src }) => src),
        );
        if (pictures !== undefined) {
          const name = `${file.replaceAll(/\W+/g, '-')}-${screen.name}.png`;
          await page.screenshot({ path: join(pictures, name) });
        }
        assert.deepEqual([errors, broken, await overflowOf(page)], [[], [], 0], screen.name);
        await page.close();
      }
    });
  }

  for (const [address, lang, next] of [
    ['/', 'en', '/readme.html'],
    ['/docs/zh-CN/', 'zh-CN', '/docs/zh-CN/readme.html'],
  ]) {
    await check(
      `the first screen is a sentence and two buttons, before how to begin and a picture: ${address}`,
      async () => {
        for (const screen of [...screens, { name: 'phone', width: 375, scheme: /** @type {const} */ ('light') }]) {
          const { page, errors } = await open(context, origin + address, screen);
          await page.waitForSelector('.VPHero h1');
          const buttons = await page.$$eval('.VPHero .action a', (all) =>
            all.map((each) => [each.getAttribute('href'), each.getBoundingClientRect().bottom < innerHeight]),
          );
          assert.deepEqual(buttons, [
            ['/playground/', true],
            [next, true],
          ]);
          assert.match((await page.textContent('.VPHero .text')) ?? '', /kube-proxy/);
          const picture = await page.$eval('.vp-doc img', (element) => {
            const image = /** @type {HTMLImageElement} */ (element);
            return {
              isLoaded: image.complete && image.naturalWidth > 0,
              scale: image.clientWidth / image.naturalWidth,
            };
          });
          assert.equal(await page.$$eval('.vp-doc table ~ h2 ~ h2 ~ p img', (all) => all.length), 1);
          assert.ok(picture.isLoaded);
          // The picture's letters are 11 and 13 pixels high.
          assert.ok(picture.scale > 0.7 && picture.scale < 1.5, `${screen.name}: scaled by ${picture.scale}`);
          if (pictures !== undefined)
            await page.screenshot({ fullPage: true, path: join(pictures, `home-${lang}-${screen.name}.png`) });
          assert.equal(await page.evaluate(() => document.documentElement.lang), lang);
          assert.deepEqual(
            [await overflowOf(page), await faintTexts(page, '.VPHome'), errors],
            [0, [], []],
            screen.name,
          );
          await page.close();
        }
      },
    );
  }

  await check('the first screen of the README leads to the playground', async () => {
    for (const [address, page] of /** @type {const} */ ([
      ['/readme.html', 'playground.html'],
      ['/docs/zh-CN/readme.html', 'playground.html'],
    ])) {
      const { page: shown, errors } = await open(context, origin + address);
      const link = shown.locator(`.vp-doc a[href$="${page}"]`).first();
      assert.ok(((await link.boundingBox())?.y ?? 1_000) < 500, address);
      await link.click();
      await shown.click('.vp-doc a[href$="/playground/"]');
      await shown.waitForSelector('#manifests');
      assert.deepEqual(errors, []);
      await shown.close();
    }
  });

  await check('the language switch leads to Chinese and back', async () => {
    const { page, errors } = await open(context, `${origin}/docs/tutorial.html`);
    for (const [label, lang] of [
      ['简体中文', 'zh-CN'],
      ['English', 'en'],
    ]) {
      await page.hover('.VPNavBarTranslations button');
      await page.click(`.VPNavBarTranslations a:has-text("${label}")`);
      await page.waitForFunction((wanted) => document.documentElement.lang === wanted, lang);
      await page.waitForSelector('h1');
    }
    assert.deepEqual(errors, []);
    await page.close();
  });

  await check('the search finds a word', async () => {
    const { page, errors } = await open(context, `${origin}/docs/`);
    await page.click('button.DocSearch-Button, #local-search button');
    await page.fill('input[type=search]', 'kube-ipvs0');
    await page.waitForSelector('.results .result');
    assert.deepEqual(errors, []);
    await page.close();
  });
}

/**
 * @param {string} folder
 * @param {string} address
 */
function deadLinks(folder, address) {
  const page = readBuilt(folder, address);
  assert.ok(page !== undefined, `no ${address}`);
  const links = [...page.matchAll(/ href="([^"]*)"/g)].map(([, link = '']) => link.replaceAll('&amp;', '&'));
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [path = '', heading = ''] = link.split('#');
    const target = path === '' ? address : posix.join(posix.dirname(address.replace(/\/$/, '/index.html')), path);
    const found = readBuilt(folder, path.startsWith('/') ? path : target);
    if (found === undefined) return true;
    return heading !== '' && !found.includes(`id="${decodeURIComponent(heading)}"`);
  });
}

/**
 * @param {string} folder
 * @param {string} address
 */
function readBuilt(folder, address) {
  const file = join(folder, address.endsWith('/') ? `${address}index.html` : address);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
