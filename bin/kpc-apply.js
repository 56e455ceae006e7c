#!/usr/bin/env node
const { start } = require('./start.js');

void start('kpc-apply');
