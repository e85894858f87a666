/** A complete response: its status, its headers and its body, where an empty one means none. */
export class WrittenResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;

  constructor(status: number, headers: Readonly<Record<string, string>>, body: string) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}
