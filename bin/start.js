// @ts-check
const { existsSync } = require('node:fs');
const { join } = require('node:path');

/**
 * Runs a program of dist/. The version needs nothing of it, and scripts ask for it often.
 *
 * @param {'kpc' | 'kpc-apply'} program
 */
async function start(program) {
  const args = process.argv.slice(2);
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`${require('../package.json').version}\n`);
    return;
  }
  const path = join(__dirname, '..', 'dist', `${program}.js`);
  if (!existsSync(path)) {
    // An install with --ignore-scripts has built nothing.
    process.stderr.write(`error: ${path} is missing\n  help: build it with "npm run build"\n`);
    process.exitCode = 2;
    return;
  }
  const { main } = require('./load.js').load(path);
  process.exitCode = await main(args);
}

module.exports = { start };
