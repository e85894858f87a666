import { readdirSync, realpathSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../harness/processes.ts';
import { run, SmallDisk } from './disks.ts';
import type { Outcome, RowOptions, SuiteRow } from './rows.ts';
import { Service } from './service.ts';
import { type Injection, inject } from './tracer.ts';
import { auditFaults, told, Witness } from './witness.ts';

const diskMegabytes = 12;
const recoveryMsMax = 5_000;
const roundsMax = 400;

/** A small disk with the data directory of a service. */
function smallDiskWithData() {
  const disk = SmallDisk.make(diskMegabytes);
  return { disk, dataDir: join(disk.folder, 'data') };
}

/** What is wrong with what health routes say: the process lives, and is ready or not. */
async function healthFaults(service: Service, ready: number): Promise<readonly string[]> {
  const faults: string[] = [];
  if ((await service.health('live')) !== 200) faults.push('/health/live is not 200');
  const found = await service.health('ready');
  if (found !== ready) faults.push(`/health/ready is ${found}, not ${ready}`);
  return faults;
}

/** Waits until changes are made again and the service says that it is ready; answers what takes too long. */
async function recovered(service: Service, witness: Witness): Promise<readonly string[]> {
  const untilMs = performance.now() + recoveryMsMax;
  while (performance.now() < untilMs) {
    if ((await service.health('ready')) === 200 && (await witness.change())) return [];
    await sleep(50);
  }
  return [`it had not recovered after ${recoveryMsMax / 1_000} s`];
}

/** A service that is running, and its client. */
interface Running {
  readonly service: Service;
  readonly witness: Witness;
}

async function begun(entry: string, dataDir: string): Promise<Running> {
  const service = new Service({ entry, dataDir });
  await service.start();
  const witness = new Witness({ service, token: await service.createOrganization() });
  await witness.run(15);
  return { service, witness };
}

/** Stops the service by force, looks whether everything is there once it runs again, and ends it. */
async function startedAgain({ service, witness }: Running, entry: string): Promise<readonly string[]> {
  await service.kill();
  await service.start();
  const faults = await witness.check();
  await service.stop();
  return [...faults, ...auditFaults(entry, service.dataDir)];
}

/** R4: the file system fills up under the service, and is given space again. */
async function diskFull({ entry, short }: RowOptions): Promise<Outcome> {
  const { disk, dataDir } = smallDiskWithData();
  try {
    const { service, witness } = await begun(entry, dataDir);
    const empty = disk.fill();
    // What was made room for earlier, such as the log of the store, still takes some.
    for (let round = 0; round < roundsMax && witness.refused === 0; round += 1) await witness.change();
    const faults = witness.refused > 0 ? [] : [`${roundsMax} changes fit on a full disk`];
    await witness.run(short ? 20 : 60);
    faults.push(...(await healthFaults(service, 503)));
    // Nobody gets in by what was not kept.
    faults.push(...(await witness.check()));
    witness.faults.length = 0;
    empty();
    faults.push(...(await recovered(service, witness)), ...(await healthFaults(service, 200)));
    await witness.run(10);
    faults.push(...(await startedAgain({ service, witness }, entry)));
    return { faults, done: told(witness) };
  } finally {
    disk.unmount();
  }
}

/** R4: killed while the disk is full, the service starts once there is space, or says in one line why it does not. */
async function killedOnFullDisk({ entry }: RowOptions): Promise<Outcome> {
  const { disk, dataDir } = smallDiskWithData();
  try {
    const { service, witness } = await begun(entry, dataDir);
    const empty = disk.fill();
    for (let round = 0; round < roundsMax && witness.refused === 0; round += 1) await witness.change();
    await service.kill();
    const outcome = await service.start().then(
      () => 'it started on the full disk',
      () => service.program.said().trim(),
    );
    const faults = outcome.split('\n').filter((line) => /^\s+at |node:internal|Error:/.test(line));
    if (!outcome.startsWith('it started') && outcome.split('\n').length !== 1) faults.push(`said: ${outcome}`);
    await service.kill();
    empty();
    await service.start();
    faults.push(...(await recovered(service, witness)));
    faults.push(...(await startedAgain({ service, witness }, entry)));
    return { faults, done: told(witness), note: outcome };
  } finally {
    disk.unmount();
  }
}

/** Has calls of the kernel fail in a service, on the files of its store alone, until it is told to stop. */
function injectInto(service: Service, injection: Injection): Promise<() => Promise<void>> {
  const files = ['latchkey.db', 'latchkey.db-wal'].map((name) => join(service.dataDir, name));
  return inject([service.program.pid], { ...injection, files });
}

/** D4: some calls of the kernel fail, all of them or every few; what was acknowledged outlives a kill right after. */
async function callsFail({ entry, short }: RowOptions, injections: readonly Injection[]): Promise<Outcome> {
  const faults: string[] = [];
  let done = '';
  const dataDir = join(realpathSync(temporaryFolder()), 'data');
  const { service, witness } = await begun(entry, dataDir);
  for (const injection of injections) {
    const refusedBefore = witness.refused;
    const mend = await injectInto(service, injection);
    await witness.run(short ? 15 : 40);
    if (injection.every === 1) faults.push(...(await healthFaults(service, 503)));
    await mend();
    if (witness.refused === refusedBefore) {
      faults.push(`${injection.calls} failed with ${injection.error} and no change was refused`);
    }
    faults.push(...(await recovered(service, witness)));
    faults.push(...(await witness.check()));
    witness.faults.length = 0;
    done = told(witness);
  }
  faults.push(...(await startedAgain({ service, witness }, entry)));
  return { faults, done };
}

const failing = (what: string, injections: readonly Injection[]): SuiteRow => ({
  id: 'D4',
  what,
  expected: 'made and kept, or 503',
  run: (options) => callsFail(options, injections),
});

const handlesLeft = 3;

/** A status, or the error's code. */
type Answered = number | string | undefined;

/** A request on a connection that stays open. */
function ask(agent: Agent, service: Service, { path, token }: { path: string; token: string }): Promise<Answered> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    const failed = (error: NodeJS.ErrnoException) => resolve(error.code);
    const sent = request(`${service.url}${path}`, { agent, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode));
      response.once('error', failed);
    });
    sent.once('error', failed);
    sent.end();
  });
}

/** D4: no handles are left: connected clients go on, the process stays, and others come in once there are some. */
async function noHandles({ entry }: RowOptions): Promise<Outcome> {
  const dataDir = join(temporaryFolder(), 'data');
  const { service, witness } = await begun(entry, dataDir);
  const { pid } = service.program;
  const [old, young] = [new Agent({ keepAlive: true, maxSockets: 1 }), new Agent({ keepAlive: true })];
  const org = { path: '/api/v1/org', token: witness.token };
  await ask(old, service, org);
  const open = readdirSync(`/proc/${pid}/fd`).length;
  run('prlimit', ['--pid', String(pid), `--nofile=${open + handlesLeft}:20000`]);
  const pending = Array.from({ length: 20 }, () => ask(young, service, org));
  const statuses: Answered[] = [];
  for (let count = 0; count < 20; count += 1) statuses.push(await ask(old, service, org));
  // A whole list is read on a connection to the store of its own.
  const list = await ask(old, service, { ...org, path: '/api/v1/users' });
  const faults = statuses.filter((status) => status !== 200).map((status) => `a connected client got ${status}`);
  if (list !== 200 && list !== 503) faults.push(`a list was answered ${list}`);
  run('prlimit', ['--pid', String(pid), '--nofile=20000:20000']);
  const others = await Promise.all(pending);
  const rejected = others.filter((status) => status !== 200);
  young.destroy();
  old.destroy();
  faults.push(...(await recovered(service, witness)), ...(await healthFaults(service, 200)));
  faults.push(...(await startedAgain({ service, witness }, entry)));
  return { faults, done: `20 answered, ${rejected.length} of 20 new not`, note: `a whole list: ${list}` };
}

/** D4: what cannot be written at the start is told in one line. */
async function readOnly({ entry }: RowOptions): Promise<Outcome> {
  const { disk, dataDir } = smallDiskWithData();
  try {
    const { service, witness } = await begun(entry, dataDir);
    await service.stop();
    run('mount', ['-o', 'remount,ro', disk.folder]);
    const faults: string[] = await service.start().then(
      () => ['it started on a file system that may not be written'],
      () => [],
    );
    const said = service.program.said().trim();
    if (said.split('\n').length !== 1 || !said.startsWith('latchkey: ')) faults.push(`said: ${said}`);
    run('mount', ['-o', 'remount,rw', disk.folder]);
    await service.start();
    faults.push(...(await recovered(service, witness)));
    faults.push(...(await startedAgain({ service, witness }, entry)));
    return { faults, done: told(witness), note: said };
  } finally {
    disk.unmount();
  }
}

const writes = 'write,pwrite64,writev,pwritev';
const syncs = 'fsync,fdatasync';

/** The rows of the disk suite, in order. */
export const diskRows: readonly SuiteRow[] = [
  { id: 'R4', what: 'the disk is full', expected: '503, nothing changed', run: diskFull },
  { id: 'R4', what: 'killed on a full disk', expected: 'one line, or starts', run: killedOnFullDisk },
  failing('syncs fail', [
    { calls: syncs, error: 'EIO', every: 1 },
    { calls: syncs, error: 'EIO', every: 3 },
  ]),
  failing('writes fail', [
    { calls: writes, error: 'EIO', every: 1 },
    { calls: writes, error: 'ENOSPC', every: 5 },
    { calls: writes, error: 'EROFS', every: 1 },
  ]),
  { id: 'D4', what: 'no handles left', expected: 'the connected go on', run: noHandles },
  { id: 'D4', what: 'a read-only file system', expected: 'one clear line', run: readOnly },
];
