/**
 * Opens the page where a link from a mail leads. The secret of the link stays in memory, leaves the address bar at once,
 * and is sent only after a person has touched the page: programs that scan mails open pages, run their scripts and may
 * even submit their forms. Rules: PASSWORD-11, PASSWORD-14, ADDRESS-5.
 *
 * - `url`: where the secret is sent as bearer token
 * - `missing`: what to do where the address has no secret
 * - `reset()`: puts the form into its first state
 * - `problem()`: what keeps the form from being sent, as `[text, field]`, or `null`
 * - `body()`: what is sent
 * - `onResponse(response, page)`: shows what came of it; `false` where this page has nothing of its own to say
 */
function openLinkPage({ url, missing, gone, reset, problem, body, onResponse }) {
  const patienceMs = 30000;
  const part = (id) => document.getElementById(id);
  const form = part('form');
  const button = part('send');
  const label = button.textContent;
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
    show(title, text);
    part('title').focus();
  }

  const page = {
    complain,
    finish,
    notValid: () =>
      finish(
        'This link is not valid',
        'A part of it may be missing. Open the link in your mail again, or copy the whole of it. If that does not help, ask for a new link.',
      ),
  };

  function open() {
    const given = new URLSearchParams(location.hash.slice(1)).get('token');
    if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
    if (given === null || given === '') {
      finish(
        'Open the link from your mail',
        `${missing}, open the link in your mail again, or copy the whole of it into the address bar. This page does not store the link, so open it again after a reload.`,
      );
      return;
    }
    // A header cannot carry anything else.
    if (!/^[A-Za-z0-9._~+/=-]+$/.test(given)) return page.notValid();
    begin();
    token = given;
    show(heading, '');
    form.hidden = false;
  }

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
