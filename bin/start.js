/** Runs a program of dist/. The version needs nothing of it, and scripts ask for it often. */
async function start(program) {
  const args = process.argv.slice(2);
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`${require('../package.json').version}\n`);
    return;
  }
  const { main } = require(`../dist/${program}.js`);
  process.exitCode = await main(args);
}

module.exports = { start };
