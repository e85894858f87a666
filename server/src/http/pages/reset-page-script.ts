/**
 * What the page does where a link from a mail leads. The secret of the link stays in memory, leaves the address bar at
 * once, and is sent with a new password only, after a person has touched the page: programs that look into mails open
 * pages, run their scripts and may even send their forms. Rules: PASSWORD-11, PASSWORD-14.
 */
export const resetPageScript = `'use strict';
(() => {
  const address = 'api/v1/userAccount/password/reset/token';
  const patienceMs = 30000;
  const part = (id) => document.getElementById(id);
  const form = part('form');
  const fields = [part('password'), part('repeated')];
  const sendLabel = part('send').textContent;
  let token = null;
  let isSending = false;

  function showPasswords(shown) {
    part('show').checked = shown;
    for (const field of fields) field.type = shown ? 'text' : 'password';
  }

  function complain(texts, wrongFields) {
    part('errors').replaceChildren(...texts.map((text) => {
      const line = document.createElement('p');
      line.textContent = text;
      return line;
    }));
    for (const field of fields) field.setAttribute('aria-invalid', String(wrongFields.includes(field)));
    if (wrongFields.length > 0) wrongFields[0].focus();
  }

  /** Nothing is left to do here: the secret and what was typed are forgotten. */
  function finish(title, text) {
    token = null;
    form.reset();
    showPasswords(false);
    form.hidden = true;
    document.title = title;
    part('title').textContent = title;
    part('outcome').textContent = text;
    part('title').focus();
  }

  function begin() {
    const given = new URLSearchParams(location.hash.slice(1)).get('token');
    if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
    if (given === null || given === '') {
      finish('Open the link from your mail', 'To choose a password, open the link in your mail again, or copy the whole of it into the address bar. This page keeps nothing of it, so loading it anew needs the link again.');
      return;
    }
    // What no link holds could not be sent either.
    if (!/^[A-Za-z0-9._~+\\/=-]+$/.test(given)) {
      finish(...notValid);
      return;
    }
    form.reset();
    showPasswords(false);
    complain([], []);
    token = given;
    document.title = 'Choose a password';
    part('title').textContent = 'Choose a password';
    part('outcome').textContent = '';
    form.hidden = false;
  }

  const notValid = ['This link is not valid', 'Perhaps a part of it is missing: open the link in your mail again, or copy the whole of it. If that does not help, ask for a new link.'];

  function laterText(answer) {
    const seconds = Number(answer.headers.get('retry-after'));
    if (!(seconds > 0)) return 'in a moment';
    if (seconds < 100) return 'in ' + seconds + ' seconds';
    return 'in ' + Math.ceil(seconds / 60) + ' minutes';
  }

  async function wrongPassword(answer) {
    const body = await answer.json().catch(() => null);
    const details = body && body.error && Array.isArray(body.error.details) ? body.error.details : [];
    const texts = details.map((detail) => 'The password ' + detail.message + '.');
    complain(texts.length > 0 ? texts : ['This password cannot be used. Please choose another.'], [fields[0]]);
  }

  async function judge(answer) {
    if (answer.status === 200) finish('Your password is set', 'You can sign in now, with your new password. You can close this page.');
    else if (answer.status === 400) await wrongPassword(answer);
    else if (answer.status === 410) finish('This link does not work any more', 'It was used already, was replaced by a newer one, or is past its time. If you have just set a password, sign in with it. Otherwise ask for a new link.');
    else if (answer.status === 401) finish(...notValid);
    else if (answer.status === 429) complain(['There were too many attempts. Please try again ' + laterText(answer) + '.'], []);
    else complain(['That did not work. Please try again ' + laterText(answer) + '.'], []);
  }

  async function send() {
    const answer = await fetch(address, {
      method: 'POST',
      headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json' },
      body: JSON.stringify({ password: fields[0].value }),
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
      signal: AbortSignal.timeout(patienceMs),
    });
    await judge(answer);
  }

  function markSending(is) {
    isSending = is;
    form.setAttribute('aria-busy', String(is));
    part('send').textContent = is ? 'Setting your password…' : sendLabel;
  }

  /** Whether a person has clicked or typed here; browsers that don't know are trusted. */
  function isPerson() {
    return !navigator.userActivation || navigator.userActivation.hasBeenActive;
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (token === null || isSending) return;
    if (!isPerson()) return complain(['Please type your password and press the button yourself.'], []);
    if (fields[0].value === '') return complain(['Please type a new password.'], [fields[0]]);
    if (fields[0].value !== fields[1].value) return complain(['The two passwords are not the same.'], [fields[1]]);
    complain([], []);
    markSending(true);
    try {
      await send();
    } catch {
      complain(['The service could not be reached. Please look at your connection and try again.'], []);
    } finally {
      markSending(false);
    }
  });
  part('show').addEventListener('change', (event) => showPasswords(event.target.checked));
  addEventListener('hashchange', begin);
  begin();
})();
`;
