import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { certificate } from './broker-program.ts';
import { freePort, type Program, requireProgram, start, temporaryFolder } from './processes.ts';

const startMsMax = 30_000;

/** The reverse proxies that are started here. */
export type ProxyKind = 'nginx' | 'caddy';

/** A service behind a proxy. */
export interface Behind {
  /** The port of the service. */
  readonly port: number;
  /** The path below which the proxy offers it, such as `/auth`. */
  readonly path: string;
}

/** Where a proxy with TLS offers a service: once with the path taken away, and once with it kept. */
export interface ReverseProxy {
  readonly stripped: string;
  readonly kept: string;
  close(): Promise<void>;
}

interface Places extends Behind {
  readonly folder: string;
  readonly ports: { readonly stripped: number; readonly kept: number };
}

function nginxConfiguration({ port, path, folder, ports }: Places): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const server = (listening: number, target: string) => `
  server {
    listen 127.0.0.1:${listening} ssl;
    ssl_certificate ${certificate.file};
    ssl_certificate_key ${certificate.keyFile};
    location ${path}/ {
      proxy_pass http://127.0.0.1:${port}${target};
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }`;
  return `daemon off;
master_process off;
pid ${folder}/pid;
error_log stderr error;
events { worker_connections 64; }
http {
  access_log off;
  client_max_body_size 0;
  proxy_request_buffering off;
  proxy_buffering off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}${server(ports.stripped, '/')}${server(ports.kept, '')}
}
`;
}

function caddyConfiguration({ port, path, ports }: Places): string {
  const tls = `tls ${certificate.file} ${certificate.keyFile}`;
  return `{
  admin off
  auto_https off
}
https://127.0.0.1:${ports.stripped} {
  ${tls}
  handle_path ${path}/* {
    reverse_proxy 127.0.0.1:${port}
  }
}
https://127.0.0.1:${ports.kept} {
  ${tls}
  reverse_proxy 127.0.0.1:${port}
}
`;
}

function begin(kind: ProxyKind, places: Places): Program {
  const { folder } = places;
  const file = join(folder, kind === 'nginx' ? 'nginx.conf' : 'Caddyfile');
  writeFileSync(file, kind === 'nginx' ? nginxConfiguration(places) : caddyConfiguration(places));
  const options = { env: { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder } };
  return kind === 'nginx'
    ? start(requireProgram('nginx'), ['-c', file, '-p', folder], options)
    : start(requireProgram('caddy'), ['run', '--config', file, '--adapter', 'caddyfile'], options);
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** Starts a proxy with TLS in front of a service, and waits until it listens. Throws what it said where it does not. */
export async function startReverseProxy(kind: ProxyKind, behind: Behind): Promise<ReverseProxy> {
  const ports = { stripped: await freePort(), kept: await freePort() };
  const program = begin(kind, { ...behind, folder: temporaryFolder(), ports });
  const endMs = performance.now() + startMsMax;
  while (!((await listens(ports.stripped)) && (await listens(ports.kept)))) {
    if (performance.now() > endMs) throw new Error(`${kind} does not listen: ${program.said()}`);
    await setTimeout(20);
  }
  return {
    stripped: `https://127.0.0.1:${ports.stripped}${behind.path}`,
    kept: `https://127.0.0.1:${ports.kept}${behind.path}`,
    close: async () => void (await program.end('SIGTERM')),
  };
}
