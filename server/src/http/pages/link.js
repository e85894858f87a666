/**
 * Opens the page where a link from a mail leads. The secret of the link stays in memory, leaves the address bar at once,
 * and is sent only after a person has touched the page: programs that scan mails open pages, run their scripts and may
 * even submit their forms. Rules: PASSWORD-11, PASSWORD-14, ADDRESS-5.
 *
 * - `url`: where the secret is sent as bearer token
 * - `missing`: what the page is for, where the address has no secret
 * - `opened(step)`: begins with a secret; returns the heading, or nothing for that of the page
 * - `reset()`: puts the form into its first state
 * - `problem()`: what keeps the form from being sent, as `[text, field]`, or `null`
 * - `body()`: what is sent
 * - `onResponse(response, page)`: shows what came of it; `false` where this page has nothing of its own to say
 */
function openLinkPage({ url, missing, opened, gone, reset, problem, body, onResponse }) {
  const patienceMs = 30000;
  const part = (id) => document.getElementById(id);
  const form = part('form');
  const pasting = part('pasting');
  const button = part('send');
  let label = button.textContent;
  const heading = part('title').textContent;
  let token = null;
  let isSending = false;

  function complain(texts, wrongField) {
    part('errors').replaceChildren(
      ...texts.map((text) => {
        const line = document.createElement('p');
        line.textContent = text;
        return line;
      }),
    );
    for (const field of form.querySelectorAll('input'))
      field.setAttribute('aria-invalid', String(field === wrongField));
    wrongField?.focus();
  }

  function show(title, text) {
    document.title = title;
    part('title').textContent = title;
    part('outcome').textContent = text;
  }

  function begin() {
    form.reset();
    reset();
    complain([]);
  }

  /** Ends the work of this page: the secret and what was typed are forgotten. */
  function finish(title, text) {
    token = null;
    begin();
    form.hidden = true;
    pasting.hidden = true;
    show(title, text);
    part('title').focus();
  }

  /** Asks for what was mailed: programs that rewrite links may have lost the secret. */
  function askForLink(title, text) {
    finish(title, text);
    pasting.reset();
    part('pasting-errors').textContent = '';
    pasting.hidden = false;
  }

  const page = {
    complain,
    finish,
    notValid: () =>
      askForLink(
        'This link is not valid',
        'A part of it may be missing. Copy the whole link out of your mail and paste it here. If that does not help, ask for a new link.',
      ),
  };

  /** The text with what other programs have percent-encoded, up to three times, decoded. */
  function decoded(text) {
    let known = text;
    for (let times = 0; times < 3; times += 1) {
      try {
        known = decodeURIComponent(known);
      } catch {
        return known;
      }
    }
    return known;
  }

  /** What stands after the # of the link, also where a program has made a part of the path of it. Rule: FIT-28. */
  function givenPart() {
    if (location.hash !== '') return location.hash.slice(1);
    const [, rest = ''] = /^[^%]*%23(.*)$/.exec(location.pathname + location.search) ?? [];
    return decoded(rest);
  }

  function begun(secret, step) {
    begin();
    token = secret;
    pasting.hidden = true;
    show(opened?.(step) ?? heading, '');
    form.hidden = false;
  }

  function open() {
    const parts = new URLSearchParams(givenPart());
    const given = parts.get('token');
    const [path] = location.pathname.split('%23');
    if (location.href !== location.origin + path) history.replaceState(null, '', path);
    if (given === null || given === '') {
      askForLink(
        'Open the link from your mail',
        `${missing}, open the link in your mail again, or paste the whole of it here. This page does not store the link, so open it again after a reload.`,
      );
      return;
    }
    // A header cannot carry anything else.
    if (!/^[A-Za-z0-9._~+/=-]+$/.test(given)) return page.notValid();
    begun(given, parts.get('step'));
  }

  pasting.addEventListener('submit', (event) => {
    event.preventDefault();
    const text = decoded(part('pasted').value);
    // Anywhere: programs put links into links of their own.
    const [secret] = /lkl_[\w-]{43}/.exec(text) ?? [];
    if (secret !== undefined) {
      begun(secret, /step=approve/.test(text) ? 'approve' : null);
      const field = form.querySelector('input');
      (field?.offsetParent ? field : button).focus();
      return;
    }
    part('pasting-errors').textContent =
      'There is no link of ours in this text. Please copy the whole link out of your mail.';
    part('pasted').focus();
  });

  function laterText(response) {
    const seconds = Number(response.headers.get('retry-after'));
    if (!(seconds > 0)) return 'in a moment';
    if (seconds < 100) return `in ${seconds} seconds`;
    return `in ${Math.ceil(seconds / 60)} minutes`;
  }

  async function send() {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body()),
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
      signal: AbortSignal.timeout(patienceMs),
    });
    const error = response.ok ? null : (await response.json().catch(() => null))?.error;
    const later = laterText(response);
    if (onResponse(response.status, error, page)) return;
    if (response.status === 401) page.notValid();
    else if (response.status === 410) finish('This link no longer works', gone);
    else if (response.status === 429) complain([`There were too many attempts. Please try again ${later}.`]);
    else complain([`That did not work. Please try again ${later}.`]);
  }

  function markSending(is) {
    isSending = is;
    form.setAttribute('aria-busy', String(is));
    if (is) label = button.textContent;
    button.textContent = is ? button.dataset.busy : label;
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (token === null || isSending) return;
    // Browsers that do not know whether a person has touched the page are trusted.
    if (navigator.userActivation && !navigator.userActivation.hasBeenActive) {
      return complain(['Please fill in the form and press the button yourself.']);
    }
    const [text, field] = problem() ?? [];
    if (text !== undefined) return complain([text], field);
    complain([]);
    markSending(true);
    try {
      await send();
    } catch {
      complain(['The server could not be reached. Please check your connection and try again.']);
    } finally {
      markSending(false);
    }
  });
  addEventListener('hashchange', open);
  open();
}
