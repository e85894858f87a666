/**
 * The script of the page that confirms an address. The secret of the link stays in memory, leaves the address bar at once,
 * and is sent only after a person has touched the page: programs that look into mails open pages, run their scripts and
 * may even send their forms. Rule: ADDRESS-5.
 */
export const confirmPageScript = `'use strict';
(() => {
  const address = 'api/v1/userAccount/email/confirm/token';
  const patienceMs = 30000;
  const part = (id) => document.getElementById(id);
  const form = part('form');
  const field = part('password');
  const notValid = ['This link is not valid', 'Perhaps a part of it is missing: open the link in your mail again, or copy the whole of it. If that does not help, ask for a new link.'];
  let token = null;
  let isSending = false;

  function complain(text) {
    part('errors').textContent = text;
    field.setAttribute('aria-invalid', String(text !== '' && !part('secret').hidden));
  }

  /** Nothing is left to do here: the secret and what was typed are forgotten. */
  function finish(title, text) {
    token = null;
    form.reset();
    form.hidden = true;
    document.title = title;
    part('title').textContent = title;
    part('outcome').textContent = text;
    part('title').focus();
  }

  function askPassword(text) {
    part('secret').hidden = false;
    complain(text);
    field.focus();
  }

  function begin() {
    const given = new URLSearchParams(location.hash.slice(1)).get('token');
    if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
    if (given === null || given === '') {
      finish('Open the link from your mail', 'To confirm an address, open the link in your mail again, or copy the whole of it into the address bar. This page keeps nothing of it, so loading it anew needs the link again.');
      return;
    }
    // What no link holds could not be sent either.
    if (!/^[A-Za-z0-9._~+\\/=-]+$/.test(given)) {
      finish(...notValid);
      return;
    }
    form.reset();
    part('secret').hidden = true;
    complain('');
    token = given;
    form.hidden = false;
  }

  async function judge(answer) {
    const body = await answer.json().catch(() => null);
    const code = body && body.error ? body.error.code : '';
    if (answer.status === 200) finish('Your address is confirmed', 'Mail about your account goes to this address from now on. You can close this page.');
    else if (answer.status === 400) askPassword('Please type the password of your account: the address was entered without it.');
    else if (answer.status === 401 && code === 'UNAUTHORIZED' && !part('secret').hidden) askPassword('This is not the password of your account.');
    else if (answer.status === 401) finish(...notValid);
    else if (answer.status === 410) finish('This link does not work any more', 'It was used already, was replaced by a newer one, has expired, or your address or password was changed since.');
    else if (answer.status === 429) complain('There were too many attempts. Please try again later.');
    else complain('That did not work. Please try again in a moment.');
  }

  async function send() {
    const answer = await fetch(address, {
      method: 'POST',
      headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json' },
      body: JSON.stringify(part('secret').hidden ? {} : { currentPassword: field.value }),
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
      signal: AbortSignal.timeout(patienceMs),
    });
    await judge(answer);
  }

  /** Whether a person has clicked or typed here; browsers that don't know are trusted. */
  function isPerson() {
    return !navigator.userActivation || navigator.userActivation.hasBeenActive;
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (token === null || isSending) return;
    if (!isPerson()) return complain('Please press the button yourself.');
    complain('');
    isSending = true;
    form.setAttribute('aria-busy', 'true');
    try {
      await send();
    } catch {
      complain('The service could not be reached. Please look at your connection and try again.');
    } finally {
      isSending = false;
      form.setAttribute('aria-busy', 'false');
    }
  });
  addEventListener('hashchange', begin);
  begin();
})();
`;
