import type { TestApp } from './test-app.ts';

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly host: string;
  readonly path: string;
  readonly isSecure: boolean;
}

/** A page as it came, no redirect followed. */
export interface Page {
  readonly status: number;
  /** Absolute address of the redirect; `null` for none. */
  readonly location: string | null;
  readonly headers: Headers;
  readonly text: string;
}

function isBelow(path: string, parent: string): boolean {
  return path === parent || path.startsWith(parent.endsWith('/') ? parent : `${parent}/`);
}

/** The `x-session-token` that each ticket of single sign-on was fetched with, by the ticket. */
export const signInOfTicket = new Map<string, string>();

/** Opens addresses as a browser does, and keeps cookies by host, path and whether the line is safe. */
export class Browser {
  readonly app: TestApp;
  /** The `x-session-token` of the sign-in that its page began last: what it comes back with is kept as fetched for that. */
  signInToken = '';
  #cookies: Cookie[] = [];

  /** @param app is reached under its public address */
  constructor(app: TestApp) {
    this.app = app;
  }

  /** Returns the cookies that it would send. */
  cookiesFor(address: string): string {
    const { hostname, pathname, protocol } = new URL(address);
    return this.#cookies
      .filter(({ host, path, isSecure }) => {
        const isSafe = !isSecure || protocol === 'https:';
        return host === hostname && isBelow(pathname, path) && isSafe;
      })
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
  }

  #keep(line: string, from: URL): void {
    const [pair = '', ...attributes] = line.split(/;\s*/);
    const at = pair.indexOf('=');
    const name = pair.slice(0, at);
    const given = new Map(attributes.map((one) => one.split('=') as [string, string?]).map(([k, v]) => [lower(k), v]));
    const path = given.get('path') ?? '/';
    const isSecure = given.has('secure');
    this.#cookies = this.#cookies.filter((one) => one.name !== name || one.host !== from.hostname || one.path !== path);
    const expires = given.get('expires');
    const isGone = given.get('max-age') === '0' || (expires !== undefined && Date.parse(expires) < Date.now());
    const value = pair.slice(at + 1);
    if (!isGone) this.#cookies.push({ name, value, host: from.hostname, path, isSecure });
  }

  /** Opens an address; with a form it is sent. */
  async open(address: string, form?: Readonly<Record<string, string>>): Promise<Page> {
    const { baseUrl, frontendUrl } = this.app.services.config;
    const reached = address.startsWith(baseUrl) ? this.app.url + address.slice(baseUrl.length) : address;
    const sent = form && { method: 'POST', body: new URLSearchParams(form) };
    const cookie = this.cookiesFor(address);
    const response = await fetch(reached, { redirect: 'manual', headers: cookie === '' ? {} : { cookie }, ...sent });
    for (const line of response.headers.getSetCookie()) this.#keep(line, new URL(address));
    const { status, headers } = response;
    const target = headers.get('location');
    const location = target && new URL(target, address).href;
    const ticket = location?.startsWith(`${frontendUrl}/sign-in#`) && outcomeOf(location)['oidc'];
    if (ticket) signInOfTicket.set(ticket, this.signInToken);
    return { status, headers, text: await response.text(), location };
  }
}

function lower(text: string): string {
  return text.toLowerCase();
}

/** Returns the fragment of the sign-in page's address, parsed. */
export function outcomeOf(signInPage: string | null): Readonly<Record<string, string>> {
  return Object.fromEntries(new URLSearchParams(new URL(signInPage ?? '').hash.slice(1)));
}
