// The pages of docs: that links lead somewhere, and that nothing overflows or fails.
// @ts-check
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { addressOf, sections } from '../.vitepress/pages.mjs';
import { open, overflowOf, screens } from './look.mjs';

/** @param {import('./look.mjs').Tools} tools */
export async function checkPages({ check, context, folder, origin, pictures }) {
  const files = sections.flatMap(({ pages }) => pages.map(([file]) => file));

  await check('links lead to what is there', () => {
    const dead = files.map(addressOf).flatMap((address) => deadLinks(folder, address));
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
