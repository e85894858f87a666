import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { freePort } from './latchkey.ts';
import { cores, temporaryFolder } from './pinned.ts';

const startMsMax = 15_000;

/**
 * Starts a NATS server with JetStream on the generator's core, its store in a temporary folder. Returns `{ url, connect, end }`;
 * needs the Debian package nats-server.
 */
export async function startNats() {
  const [port, folder] = [await freePort(), temporaryFolder()];
  const store = join(folder, 'nats');
  mkdirSync(store);
  const own = ['nats-server', '-a', '127.0.0.1', '-p', String(port), '-js', '-sd', store];
  const [command, ...args] = cores === null ? own : ['taskset', '-c', String(cores.generator), ...own];
  const path = `${process.env.PATH}:/usr/sbin:/sbin`;
  const child = spawn(command, args, { env: { PATH: path }, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text) => {
    said = (said + text).slice(-2_000);
  });
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error));
    child.once('close', () => resolve(new Error(`nats-server ended: ${said}`)));
  });
  const leave = () => child.kill('SIGKILL');
  process.once('exit', leave);
  const open = () => connect({ servers: `127.0.0.1:${port}`, reconnect: false });
  const untilMs = performance.now() + startMsMax;
  for (;;) {
    const outcome = await Promise.race([open().catch(() => null), ended]);
    if (outcome instanceof Error) throw outcome;
    if (outcome !== null) {
      await outcome.close();
      break;
    }
    if (performance.now() > untilMs) throw new Error(`nats-server did not start: ${said}`);
    await sleep(50);
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    connect: open,
    end: async () => {
      child.kill('SIGTERM');
      await ended;
      process.off('exit', leave);
    },
  };
}
