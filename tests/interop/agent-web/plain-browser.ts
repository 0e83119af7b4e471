import { request, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { text } from "node:stream/consumers";

export interface Page {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
}

/** Behaves as a browser without scripting for one site: sends its cookies, and an Origin with forms. */
export class PlainBrowser {
  readonly url: string;
  readonly #cookies = new Map<string, { value: string; path: string }>();

  constructor(url: string) {
    this.url = url;
  }

  get(path: string): Promise<Page> {
    return this.#send("GET", path);
  }

  post(path: string, form: Readonly<Record<string, string>> = {}): Promise<Page> {
    return this.#send("POST", path, new URLSearchParams(form).toString());
  }

  async #send(method: string, path: string, body?: string): Promise<Page> {
    const url = new URL(path, this.url);
    const cookies = [...this.#cookies].filter(([, { path: scope }]) => url.pathname.startsWith(scope));
    const outgoing = request(url, {
      method,
      headers: {
        ...(cookies.length > 0 && {
          Cookie: cookies.map(([name, { value }]) => `${name}=${value}`).join("; "),
        }),
        ...(body !== undefined && { Origin: this.url, "Content-Type": "application/x-www-form-urlencoded" }),
      },
    });
    outgoing.end(body);
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    for (const line of incoming.headers["set-cookie"] ?? []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      const scope = /; Path=([^;]+)/.exec(line)?.[1] ?? "/";
      if (/Max-Age=0(;|$)/.test(line)) this.#cookies.delete(name);
      else this.#cookies.set(name, { value, path: scope });
    }
    return {
      status: incoming.statusCode ?? 0,
      location: incoming.headers.location,
      body: await text(incoming),
    };
  }
}
