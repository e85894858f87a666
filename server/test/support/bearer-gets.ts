import { Agent, request } from 'node:http';

/** Asks with as little of its own as can be: for tests in which the time between two requests counts. */
export interface BearerGets {
  /** The status of the answer to GET. */
  status(path: string, credential: string | null): Promise<number>;
  close(): void;
}

/** Makes requests to a service over connections that stay open. */
export function bearerGets(url: string): BearerGets {
  const agent = new Agent({ keepAlive: true });
  return {
    status: (path, credential) =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${credential}` };
        const sent = request(`${url}${path}`, { agent, headers }, (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        });
        sent.on('error', reject);
        sent.end();
      }),
    close: () => agent.destroy(),
  };
}
