import type { FastifyInstance } from 'fastify';
import { confirmPageScript } from './confirm-page-script.ts';
import { addPage, type PageFile, pageStyle } from './reset-page.ts';

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>Confirm your e-mail address</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="confirm-email/page.css">
<script src="confirm-email/page.js" defer></script>
</head>
<body>
<main>
<h1 id="title" tabindex="-1">Confirm your e-mail address</h1>
<noscript><p>This page needs JavaScript to confirm your address. Please switch it on, and open the link in your mail again.</p></noscript>
<p id="outcome" role="status"></p>
<form id="form" method="post" novalidate hidden>
<div id="secret" hidden>
<label for="password">Password of your account</label>
<input id="password" type="password" autocomplete="current-password" autocapitalize="none" spellcheck="false" aria-describedby="errors">
</div>
<div id="errors" role="alert"></div>
<button id="send" type="submit">This address is mine</button>
</form>
</main>
</body>
</html>
`;

const files: readonly PageFile[] = [
  ['/confirm-email', { type: 'text/html', caching: 'no-store' }, Buffer.from(page)],
  ['/confirm-email/page.js', { type: 'text/javascript', caching: 'no-cache' }, Buffer.from(confirmPageScript)],
  ['/confirm-email/page.css', { type: 'text/css', caching: 'no-cache' }, Buffer.from(pageStyle)],
];

/**
 * The page where links to confirm an address lead as long as no other front end answers there. Opening it asks for nothing
 * and changes nothing; the secret of the link never reaches the server but as the credential of the confirmation. Rule:
 * ADDRESS-5.
 * @returns its addresses, which take GET from every caller
 */
export function addConfirmPage(app: FastifyInstance): string[] {
  return addPage(app, files);
}
