import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StartupError } from '../../src/base/errors.ts';
import { asStored, StoredMail } from '../support/stored-mail.ts';
import { TestApp } from '../support/test-app.ts';

const otherKey = 'f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a089';

describe('the key of what an administrator stores about mail', () => {
  let mail: StoredMail;
  beforeEach(async () => {
    mail = await StoredMail.start();
  });
  afterEach(() => mail.app.close());

  it('is in a file that stays as it is, and may be given in its place (CONFIG-7)', async () => {
    const file = readFileSync(join(mail.app.dataDir, 'encryption-key'), 'utf8');
    await mail.startAgain();
    expect(await mail.settings()).toEqual(asStored);
    expect(readFileSync(join(mail.app.dataDir, 'encryption-key'), 'utf8')).toBe(file);
    // A key that is given comes before the file, and may be the same.
    await mail.startAgain({ ENCRYPTION_KEY: file.trim() });
    expect(await mail.settings()).toEqual(asStored);
  });

  it('counts as not configured under another key, which is told, and comes back with the right one (AUDIT-6, CONFIG-7, MAIL-1)', async () => {
    await mail.startAgain({ ENCRYPTION_KEY: otherKey });
    expect(await mail.settings()).toBeNull();
    expect(await mail.told()).toMatchObject({
      configured: false,
      host: null,
      hasPassword: false,
      note: 'The stored settings cannot be decrypted with the present ENCRYPTION_KEY: set them again',
    });
    await mail.startAgain();
    expect(await mail.settings()).toEqual(asStored);
    expect(await mail.told()).toMatchObject({ configured: true, source: 'stored', hasPassword: true, note: null });
  });

  it('is nothing that a service starts with whose key file is damaged (CONFIG-7, CONFIG-24)', async () => {
    const { dataDir, clock } = mail.app;
    const file = join(dataDir, 'encryption-key');
    await mail.app.stop();
    const good = readFileSync(file, 'utf8');
    writeFileSync(file, good.slice(1));
    const started = TestApp.start({ DATA_DIR: dataDir }, clock);
    await expect(started).rejects.toThrow(
      new StartupError(`The key file ${file} is damaged: restore it from a backup`),
    );
    writeFileSync(file, good);
    mail.app = await TestApp.start({ DATA_DIR: dataDir }, clock);
    expect(await mail.settings()).toEqual(asStored);
  });
});
