// Checks the built site in a headless Chromium (npm run site:test). CHROMIUM names the browser, SITE_PICTURES a folder for pictures of
// the pages, and SITE_CHECKS a regular expression for the names of the checks to run.
// @ts-check
import { mkdtempSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { startChecks } from './checks.mjs';
import { checkDumps } from './dumps.mjs';
import { checkPages } from './pages.mjs';
import { checkPlayground } from './playground.mjs';
import { serve } from './serve.mjs';

const folder = join(import.meta.dirname, '../dist');
const profile = mkdtempSync(join(tmpdir(), 'kpc-site-'));
const pictures = process.env['SITE_PICTURES'];
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
const server = await serve(folder);
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
const { check, finish } = startChecks(new RegExp(process.env['SITE_CHECKS'] ?? ''));
try {
  const tools = { check, context, folder, pictures, ...server };
  await checkPlayground(tools);
  await checkDumps(tools);
  await checkPages(tools);
} finally {
  await context.close();
  server.close();
  rmSync(profile, { recursive: true, force: true });
}
process.exitCode = finish() ? 0 : 1;
