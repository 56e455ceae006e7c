import { expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const advice = '  help: name a folder that "kpc compile -o" wrote, or a file that "kpc bundle pack" wrote\n';

test.each(['apply', 'plan', 'verify', 'doctor'])('%s of a folder that is not there says so', async (command) => {
  const { status, err } = await callApply(createFakeNode().host, command, 'test/nowhere');
  expect([status, err]).toEqual([
    2,
    `error: test/nowhere is not a bundle that can be applied:\n  there is no such folder or file [bad-bundle]\n${advice}`,
  ]);
});

test.each(['fixtures/quickstart/expected-ipvs/manifest.json', 'package.json/bundle'])(
  'apply of %s says that it is neither a folder nor a pack',
  async (path) => {
    const { status, err } = await callApply(createFakeNode().host, 'apply', path);
    expect([status, err]).toEqual([
      2,
      `error: ${path} is not a bundle that can be applied:\n  it is neither a folder nor a pack [bad-bundle]\n${advice}`,
    ]);
  },
);
