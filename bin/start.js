// @ts-check
const { existsSync } = require('node:fs');
const { homedir } = require('node:os');
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
  keepCompiledCode();
  const { main } = require(path);
  process.exitCode = await main(args);
}

/**
 * Lets Node keep the code that V8 compiles, for the next start; Node 22.8 and later can. In a folder of the user's own: Node's usual
 * one is in /tmp, where another user may have been first. Root runs no code out of a folder that the environment names.
 */
function keepCompiledCode() {
  const { enableCompileCache } = /** @type {{ enableCompileCache?: (folder: string) => unknown }} */ (
    require('node:module')
  );
  if (enableCompileCache && process.getuid?.() !== 0) enableCompileCache(join(homedir(), '.cache', 'kpc'));
}

module.exports = { start };
