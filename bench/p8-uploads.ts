import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../harness/processes.ts';
import { startLatchkey } from './latchkey.ts';
import { measureTurns } from './latency-turns.ts';
import { makePictures, type Picture } from './pictures.ts';
import type { Rounds, Turn } from './rows.ts';

const script = fileURLToPath(new URL('./picture-uploader.ts', import.meta.url));
const perSecond = 5;

function storePictures(pictures: readonly Picture[]) {
  const folder = temporaryFolder();
  return pictures.map(({ name, type, bytes }) => {
    const file = join(folder, name);
    writeFileSync(file, bytes);
    return { name, type, file };
  });
}

/** P8: the latency of token checks idle and during uploads. Returns one turn a round. */
export async function measureUploads(options: Rounds): Promise<readonly Turn[]> {
  const { tell } = options;
  tell('P8: making pictures');
  const pictures = await makePictures();
  tell(`P8: ${pictures.map(({ name, bytes }) => `${name} ${(bytes.length / 1e6).toFixed(2)} MB`).join(', ')}`);
  const started = await startLatchkey({ scopes: ['user:read', 'user:write'], core: 'others' });
  const { port, headers } = started;
  const orders = { port, path: '/api/v1/users/dp', headers, perSecond, pictures: storePictures(pictures) };
  const work = { name: 'uploads', good: '201', script, orders };
  return measureTurns({ id: 'P8', started, work }, options);
}
