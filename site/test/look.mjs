// Measures what can be seen of a page.
// @ts-check

/**
 * @typedef {import('playwright-core').Page} Page
 * @typedef {import('playwright-core').BrowserContext} Context
 * @typedef {{
 *   check: (name: string, run: () => unknown) => Promise<void>, context: Context, folder: string,
 *   pictures: string | undefined, origin: string, requests: { method: string, url: string }[],
 * }} Tools
 */

/** @type {readonly { name: string, width: number, scheme: 'light' | 'dark' }[]} */
export const screens = [
  { name: 'wide-light', width: 1280, scheme: 'light' },
  { name: 'wide-dark', width: 1280, scheme: 'dark' },
  { name: 'narrow-light', width: 390, scheme: 'light' },
  { name: 'narrow-dark', width: 390, scheme: 'dark' },
];

/**
 * Opens a page on a screen, and collects its errors.
 *
 * @param {Context} context
 * @param {string} url
 * @param {typeof screens[number]} screen
 */
export async function open(context, url, { width, scheme } = { name: '', width: 1280, scheme: 'light' }) {
  const page = await context.newPage();
  /** @type {string[]} */
  const errors = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('dialog', (dialog) => {
    errors.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(url);
  return { page, errors };
}

/**
 * Returns how many pixels of the page are outside the screen.
 *
 * @param {Page} page
 */
export function overflowOf(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

/**
 * Lists texts whose colour is too close to their background (WCAG 2 AA requires 4.5).
 *
 * @param {Page} page
 * @param {string} root
 */
export function faintTexts(page, root) {
  return page.evaluate((selector) => {
    /** @param {string} colour */
    const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    /** @param {readonly number[]} colour */
    const luminance = ([r = 0, g = 0, b = 0]) => {
      const [x = 0, y = 0, z = 0] = [r, g, b].map((each) => {
        const part = each / 255;
        return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    /** @param {Element | null} element */
    const behind = (element) => {
      for (let each = element; each; each = each.parentElement) {
        const colour = parse(getComputedStyle(each).backgroundColor);
        if ((colour[3] ?? 1) === 1) return colour;
      }
      return [255, 255, 255];
    };
    const faint = [];
    for (const element of document.querySelectorAll(`${selector} *`)) {
      const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim());
      if (!own || element.closest('svg') || element.getClientRects().length === 0) continue;
      const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(behind(element))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < 4.5) faint.push(`${element.textContent?.trim().slice(0, 40)}: ${contrast.toFixed(1)}`);
    }
    return faint;
  }, root);
}
