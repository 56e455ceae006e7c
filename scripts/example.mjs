// Shows a Service, what kpc makes of it, and what to try next, on one screen (npm run example).
// @ts-check
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import chalk from 'chalk';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
process.chdir(root);
const { main } = await import(pathToFileURL(join(root, 'dist', 'kpc.js')).href);
const svc = 'fixtures/quickstart/svc.yaml';
const colour = chalk.level > 0 && process.env['TERM'] !== 'dumb';

/**
 * Runs kpc and returns what it prints.
 *
 * @param {readonly string[]} args
 * @returns {Promise<string>}
 */
async function run(args) {
  let printed = '';
  const status = await main(args, {
    out: async (/** @type {string} */ text) => void (printed += text),
    err: async (/** @type {string} */ text) => void process.stderr.write(text),
    status: async () => {},
    readStdin: async () => '',
    colour: { out: colour, err: false },
    interactive: false,
  });
  if (status !== 0) process.exit(status);
  return printed;
}

/** @param {string} line A line of "kpc compile --print ipvsadm" */
function paintRule(line) {
  return line.startsWith('-A') ? chalk.bold(line) : chalk.green(line);
}

const description = await run(['describe', 'nginx', '-f', svc, '--proxy-mode', 'ipvs']);
const rules = await run(['compile', '-f', svc, '--proxy-mode', 'ipvs', '--print', 'ipvsadm']);
// Take the Service and its endpoints. Their names in the kernel and in DNS follow.
const [service = '', port = ''] = description.split('\n\n');
const heading = (/** @type {string} */ text) => chalk.bold.underline(text);

console.log(`${heading(`A Service and its three pods, from ${svc}`)}

${service}

${port}

${heading('What kube-proxy makes of it on worker-1, in IPVS mode')}

${rules.trimEnd().split('\n').map(paintRule).join('\n')}

-A is an address and port that worker-1 answers on: the cluster IP, and the node port on the node's own address.
-a is an endpoint that takes its connections in turn. The pod that is not ready gets none, so it has no line.

${heading('Try next')} (node bin/kpc.js is the program kpc)

  node bin/kpc.js describe nginx -f ${svc}                     its endpoints; with --rules, what is in the kernel
  node bin/kpc.js compile -f ${svc} -o golden/worker-1         all files, to keep in git
  sed 's/ready: false/ready: true/' ${svc} | node bin/kpc.js diff golden/worker-1 -
                                                                                  what changes when the pod is ready`);
