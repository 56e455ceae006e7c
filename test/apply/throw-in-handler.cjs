// @ts-nocheck: it replaces functions of Node by others of its own.
// Loaded into kpc-apply by a test: once the first transaction of nft has begun, one handler of events throws, once.
const childProcess = require('node:child_process');
const net = require('node:net');
const { spawn } = childProcess;
const where = process.env.KPC_TEST_HANDLER;
let state = 'waiting';

function throwing(handler) {
  return function (...args) {
    if (state !== 'armed') return handler?.apply(this, args);
    state = 'thrown';
    throw new Error('a fault of the test');
  };
}

function throwOn(emitter, name) {
  for (const method of ['on', 'once', 'addListener']) {
    const add = emitter[method];
    emitter[method] = function (event, handler) {
      return add.call(this, event, event === name ? throwing(handler) : handler);
    };
  }
}

if (where === 'a signal') throwOn(process, 'SIGINT');
if (where === 'a socket of the monitor') {
  const { createServer } = net;
  net.createServer = (options, handler) => createServer(options, throwing(handler));
}
if (where === 'a timer') {
  const { setTimeout: start } = globalThis;
  globalThis.setTimeout = (handler, milliseconds, ...args) =>
    milliseconds === 10_000 ? start(throwing(handler), 100, ...args) : start(handler, milliseconds, ...args);
}

childProcess.spawn = (tool, args, options) => {
  const child = spawn(tool, args, options);
  if (tool !== 'nft' || !args.includes('-f') || state !== 'waiting') return child;
  state = 'armed';
  if (where === 'stdout, data') throwOn(child.stdout, 'data');
  if (where === 'stderr, data') throwOn(child.stderr, 'data');
  if (where === 'exit' || where === 'close') throwOn(child, where);
  if (where === 'error') setImmediate(() => child.emit('error', new Error('a fault of the test')));
  if (where === 'a signal') setImmediate(() => process.kill(process.pid, 'SIGINT'));
  if (where === 'a socket of the monitor') {
    const socket = net.connect(Number(process.env.KPC_TEST_PORT), '127.0.0.1');
    socket.on('error', () => {}).on('connect', () => socket.write('GET /metrics HTTP/1.1\r\n\r\n'));
  }
  return child;
};
