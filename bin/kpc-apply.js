#!/usr/bin/env node
import { main } from '../dist/kpc-apply.js';

process.exitCode = await main(process.argv.slice(2));
