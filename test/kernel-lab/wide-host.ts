// Checks the lab on a processor that its kernel does not know (whole-registers.c). Makes any processor look like one with AMX, so that the
// tests do not depend on the machine.
import { spawnSync } from 'node:child_process';
import { assert, startSuite } from './harness.ts';

const suite = startSuite('wide-host');

function inKernel(env: Readonly<Record<string, string>>, script: string) {
  const args = ['--megabytes', '256', '--uml', 'bash', '-c', script];
  return spawnSync(`${process.env['KPC_LAB']}/in-kernel.sh`, args, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
}

await suite.check('the kernel does not come up without help, and comes up with it', () => {
  // Compute with floating point in several processes at once, which must not change each other's registers.
  const count = 'BEGIN { for (i = 1; i <= 20000; i++) x += 1 / i; printf "%.12f\\n", x }';
  const work = `for i in 1 2 3 4; do awk '${count}' & done; wait`;
  const { status, stdout, stderr } = inKernel({ KPC_LAB_WIDE_HOST: '1' }, `${work}; exit 3`);
  assert(status === 3, `status ${status}: ${stderr}`);
  assert(stderr.includes('the kernel did not come up (attempt 1)'), `it came up without: ${stderr}`);
  const sums = stdout.split(/\r?\n/).filter((line) => /^\d+\.\d{12}$/.test(line));
  assert(sums.join() === Array(4).fill('10.480728217229').join(), `counted ${sums.join()}`);
});
suite.finish();
