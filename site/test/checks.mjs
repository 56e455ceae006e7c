// Runs checks one after the other, and counts them.
// @ts-check

/** @param {RegExp} only the names of those that are run */
export function startChecks(only) {
  let passed = 0;
  let failed = 0;
  return {
    /**
     * @param {string} name
     * @param {() => unknown} run
     */
    check: async (name, run) => {
      if (!only.test(name)) return;
      try {
        await run();
        passed += 1;
        console.log(`ok   ${name}`);
      } catch (error) {
        failed += 1;
        console.log(`FAIL ${name}\n${error instanceof Error ? error.message : String(error)}`);
      }
    },
    finish: () => {
      console.log(`${passed} passed, ${failed} failed`);
      return failed === 0;
    },
  };
}
