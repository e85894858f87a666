// Row P5: processor time of one verification of a personal access token, in process. Run alone, it prints the result
// as one line of JSON; `npm run bench` runs it in a process of its own.
import { median } from './statistics.mjs';

const warmUpIterations = 20_000;
const iterations = 200_000;
const batches = 5;

/**
 * THE ADAPTER: the only part that knows the server's modules. It opens a store in a new temporary folder, makes an
 * organization with one personal access token, and returns
 *   verify()  verifies the Authorization header of that token as a request would, and returns the principal
 *             (or a promise of it); throws when the token is refused
 *   close()   closes the store and removes the folder
 */
function loadVerification() {
  throw new Error('P5 is not connected yet: complete loadVerification() in bench/p5-verification.mjs');
}

async function cpuMicrosecondsEach(call) {
  const before = process.cpuUsage();
  for (let count = 0; count < iterations; count++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / iterations;
}

async function warmUp(call) {
  for (let count = 0; count < warmUpIterations; count++) await call();
}

/**
 * Processor time of one `verify()` in microseconds over the same loop with a call that only hands back the principal,
 * which is what a route without authentication has: the median of five batches of 200,000 calls, and all five.
 */
async function measureVerification(verify) {
  const principal = await verify();
  if (!principal) throw new Error('the verification returned no principal');
  const handBack = async () => principal;
  await warmUp(verify);
  await warmUp(handBack);
  const each = [];
  for (let batch = 0; batch < batches; batch++) {
    const without = await cpuMicrosecondsEach(handBack);
    const using = await cpuMicrosecondsEach(verify);
    each.push(using - without);
  }
  return { microseconds: median(each), batches: each };
}

async function main() {
  const { verify, close } = await loadVerification();
  try {
    console.log(JSON.stringify(await measureVerification(verify)));
  } finally {
    await close();
  }
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
