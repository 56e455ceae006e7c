#!/usr/bin/env node
const args = process.argv.slice(2);

async function run() {
  const { main } = require('../dist/kpc-apply.js');
  process.exitCode = await main(args);
}

// The version needs nothing of the program, and scripts ask for it often.
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(`${require('../package.json').version}\n`);
} else {
  void run();
}
