#!/usr/bin/env node
const { main } = require('../dist/kpc-apply.js');

async function run() {
  process.exitCode = await main(process.argv.slice(2));
}

void run();
