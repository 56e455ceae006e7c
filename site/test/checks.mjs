// Runs checks one after the other, and counts them.
// @ts-check

export function startChecks() {
  let passed = 0;
  let failed = 0;
  return {
    /**
     * @param {string} name
     * @param {() => unknown} run
     */
    check: async (name, run) => {
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
