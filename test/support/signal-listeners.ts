import { deepStrictEqual } from 'node:assert/strict';
import { afterAll } from 'vitest';

// vitest.config.ts runs this before each test file. A command that runs in this process listens for signals, and must remove its listeners
// when it ends.

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGTSTP'] as const;
const countListeners = () => signals.map((signal) => process.listenerCount(signal));
const before = countListeners();

afterAll(() => deepStrictEqual(countListeners(), before, `still listens for ${signals.join(', ')}`));
