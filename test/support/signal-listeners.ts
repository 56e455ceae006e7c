import { deepStrictEqual } from 'node:assert/strict';
import { afterAll } from 'vitest';

// vitest.config.ts runs this before each test file. A command that runs within this process listens for signals, and must
// have let go of them when it has come to its end.

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGTSTP'] as const;
const countListeners = () => signals.map((signal) => process.listenerCount(signal));
const before = countListeners();

afterAll(() => deepStrictEqual(countListeners(), before, `still listens for ${signals.join(', ')}`));
