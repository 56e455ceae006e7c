#!/usr/bin/env node
const { main } = require('../dist/kpc.js');

async function run() {
  process.exitCode = await main(process.argv.slice(2));
}

void run();
