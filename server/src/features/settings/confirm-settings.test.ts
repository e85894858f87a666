import { expect, it } from 'vitest';
import { TestApp } from '../../../test/support/test-app.ts';

it('POST /settings/smtp/confirm: 200, and recorded (LEAVER-10)', async () => {
  const app = await TestApp.start();
  const admin = await app.setUp();
  await admin.put('/settings/smtp', { host: 'smtp.example.com', from: 'no-reply@example.com' });
  const { status, body } = await admin.post('/settings/smtp/confirm');
  expect([status, body.host, body.confirmedBy]).toEqual([200, 'smtp.example.com', admin.userId]);
  expect((await app.audit()).at(-1)).toMatchObject({ action: 'settings.mail-confirmed', actor_user_id: admin.userId });
  await app.close();
});
