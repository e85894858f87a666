import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { organization } from '../harness/api-client.ts';
import { messageOf } from '../harness/command-line.ts';
import { removeFolder, temporaryFolder } from '../harness/processes.ts';
import { compareEvents } from './history.ts';
import { creationEntries, type Kills } from './kills.ts';
import { Service } from './service.ts';

/** R1: a service is killed while it founds the organization: there is a whole one afterwards, or none. */
export async function killFounding({ kills, entry, tell }: Kills) {
  const faults: string[] = [];
  let created = 0;
  for (let kill = 1; kill <= kills; kill += 1) {
    const folder = temporaryFolder();
    const service = new Service({ entry, dataDir: join(folder, 'data') });
    await service.start();
    const response = service.call('POST', '/org', { body: organization }).catch(() => null);
    await sleep(randomInt(20, 300));
    await service.kill();
    const wasAnswered = (await response)?.status === 200;
    await service.start();
    const { body } = await service.ask('GET', '/org/exists');
    if (wasAnswered && !body.exists) faults.push(`kill ${kill}: an organization is gone`);
    if (body.exists) created += 1;
    else await service.ask('POST', '/org', { body: organization });
    faults.push(...(await wholeOrganization(service)).map((fault) => `kill ${kill}: ${fault}`));
    await service.kill();
    removeFolder(folder);
  }
  tell(`R1: killed ${kills} times while founding, ${created} organizations were there`);
  return { kills, founded: created, events: 2 * kills, lost: faults, invented: [], disordered: [] };
}

async function wholeOrganization(service: Service): Promise<readonly string[]> {
  try {
    const token = await service.newSession();
    const times = { sentMs: 0, answeredMs: Number.POSITIVE_INFINITY };
    const { lost, invented, disordered } = compareEvents(
      await creationEntries(service, token, times),
      await service.events(),
    );
    const { body: groups } = await service.ask('GET', '/userGroups', { token });
    const { totalCount } = groups.pagination;
    return [...lost, ...invented, ...disordered, ...(totalCount === 3 ? [] : [`there are ${totalCount} groups`])];
  } catch (error) {
    return [`the organization is half made: ${messageOf(error)}`];
  }
}
