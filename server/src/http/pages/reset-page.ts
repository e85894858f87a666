import type { FastifyInstance } from 'fastify';
import { resetPageScript } from './reset-page-script.ts';

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>Choose a password</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="reset-password/page.css">
<script src="reset-password/page.js" defer></script>
</head>
<body>
<main>
<h1 id="title" tabindex="-1">Choose a password</h1>
<noscript><p>This page needs JavaScript to set your password. Please switch it on, and open the link in your mail again.</p></noscript>
<p id="outcome" role="status"></p>
<form id="form" method="post" novalidate hidden>
<label for="password">New password</label>
<input id="password" type="password" autocomplete="new-password" autocapitalize="none" spellcheck="false" required aria-describedby="rules errors">
<ul id="rules">
<li>At least 8 characters</li>
<li>An upper-case and a lower-case letter</li>
<li>A digit</li>
<li>A special character, such as ! or -</li>
<li>Not easy to guess: no common password, no name of yours</li>
</ul>
<label for="repeated">The same password again</label>
<input id="repeated" type="password" autocomplete="new-password" autocapitalize="none" spellcheck="false" required aria-describedby="errors">
<label class="choice"><input id="show" type="checkbox"> Show what I type</label>
<div id="errors" role="alert"></div>
<button id="send" type="submit">Set password</button>
</form>
</main>
</body>
</html>
`;

/** The style of pages behind links in mails. */
export const pageStyle = `:root {
  color-scheme: light dark;
  --ground: #f4f5f7;
  --sheet: #ffffff;
  --text: #1b1f24;
  --edge: #6b7280;
  --strong: #1a56b0;
  --on-strong: #ffffff;
  --wrong: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a;
    --sheet: #1f2328;
    --text: #e8eaed;
    --edge: #8b949e;
    --strong: #8ab4f8;
    --on-strong: #0b1a33;
    --wrong: #ffb4ab;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none; }
body {
  margin: 0;
  padding: 1rem;
  background: var(--ground);
  color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;
}
main {
  max-width: 28rem;
  margin: 5vh auto;
  padding: 1.5rem;
  border-radius: 0.75rem;
  background: var(--sheet);
  overflow-wrap: anywhere;
}
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
h1:focus { outline: none; }
p { margin: 0; }
label { display: block; font-weight: 600; }
input:not([type='checkbox']) {
  width: 100%;
  margin: 0.25rem 0 1rem;
  padding: 0.625rem 0.75rem;
  border: 1px solid var(--edge);
  border-radius: 0.375rem;
  background: var(--sheet);
  color: inherit;
  font: inherit;
}
input[aria-invalid='true'] { border: 2px solid var(--wrong); }
ul { margin: -0.5rem 0 1rem; padding-left: 1.25rem; font-size: 0.9375rem; }
.choice { display: flex; gap: 0.5rem; align-items: center; margin: 0 0 1rem; font-weight: 400; }
.choice input { width: 1.25rem; height: 1.25rem; margin: 0; accent-color: var(--strong); }
#errors { color: var(--wrong); font-weight: 600; }
#errors:not(:empty) { margin: 0 0 1rem; }
button {
  width: 100%;
  padding: 0.75rem;
  border: 0;
  border-radius: 0.375rem;
  background: var(--strong);
  color: var(--on-strong);
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}
[aria-busy='true'] button { opacity: 0.7; cursor: progress; }
:is(input, button):focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
`;

/** Only this origin may be asked for anything, no form is sent by the browser itself, and nobody may frame the page. */
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";
const pageHeaders = {
  'content-security-policy': contentPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
};

/** A file of a page: its address, what it is, and its content. */
export type PageFile = readonly [string, { readonly type: string; readonly caching: string }, Buffer];

/** Serves the files of a page behind links in mails; returns their addresses, which take GET from every caller. */
export function addPage(app: FastifyInstance, files: readonly PageFile[]): string[] {
  for (const [url, { type, caching }, content] of files) {
    app.get(url, { config: { open: 'page' } }, async (_, reply) => {
      reply.type(`${type}; charset=utf-8`).headers({ ...pageHeaders, 'cache-control': caching });
      return content;
    });
  }
  return files.map(([url]) => url);
}

/** Sent from the same memory, however many ask. */
const files: readonly PageFile[] = [
  ['/reset-password', { type: 'text/html', caching: 'no-store' }, Buffer.from(page)],
  ['/reset-password/page.js', { type: 'text/javascript', caching: 'no-cache' }, Buffer.from(resetPageScript)],
  ['/reset-password/page.css', { type: 'text/css', caching: 'no-cache' }, Buffer.from(pageStyle)],
];

/**
 * The page where the links of invitation and reset mails lead as long as no other front end answers there: a new
 * password is chosen. Opening it asks for nothing and changes nothing, and the secret of the link, which stands in the
 * address after `#`, never reaches the server but as the credential of the reset. Rules: PASSWORD-11, PASSWORD-14.
 * @returns its addresses, which take GET from everybody
 */
export function addResetPage(app: FastifyInstance): string[] {
  return addPage(app, files);
}
