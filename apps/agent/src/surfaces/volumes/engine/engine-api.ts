import { jsonOf, type HttpResponse } from "@devplat/http-client";
import { z } from "zod";
import { requestOverSocket } from "../../../peers/socket-request.ts";

/** A container that is restarted gets ten seconds to end. In milliseconds. */
const TIMEOUT_MS = 60_000;

const containersSchema = z.array(
  z.object({
    Id: z.string().regex(/^[0-9a-f]+$/),
    Names: z.array(z.string()),
    Labels: z.record(z.string(), z.string()),
  }),
);
const execSchema = z.object({ Id: z.string().regex(/^[0-9a-f]+$/) });

/** A running container. */
export interface Container {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The API of a container engine, Docker or Podman, over its Unix socket. All methods throw HttpClientError or EngineError. */
export class EngineApi {
  readonly socket: string;

  constructor(socket: string) {
    this.socket = socket;
  }

  /** Running containers that have a volume and a label. */
  async containersWith(volume: string, label: string): Promise<readonly Container[]> {
    const filters = JSON.stringify({ volume: [volume], label: [label], status: ["running"] });
    const response = await this.#request("GET", `/containers/json?filters=${encodeURIComponent(filters)}`);
    const found = containersSchema.parse(jsonOf(response));
    return found.map(({ Id, Names, Labels }) => ({ id: Id, name: Names[0] ?? Id, labels: Labels }));
  }

  async restart(id: string): Promise<void> {
    await this.#request("POST", `/containers/${id}/restart`);
  }

  /** @param signal without SIG */
  async signal(id: string, signal: string): Promise<void> {
    await this.#request("POST", `/containers/${id}/kill?signal=SIG${signal}`);
  }

  /** Starts a command in a container, and does not wait for its end. */
  async exec(id: string, command: readonly string[]): Promise<void> {
    const { Id } = execSchema.parse(
      jsonOf(await this.#request("POST", `/containers/${id}/exec`, { Cmd: command })),
    );
    await this.#request("POST", `/exec/${Id}/start`, { Detach: true });
  }

  async #request(method: "GET" | "POST", path: string, body?: object): Promise<HttpResponse> {
    const response = await requestOverSocket({
      socketPath: this.socket,
      path,
      method,
      timeoutMs: TIMEOUT_MS,
      ...(body !== undefined && {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    if (response.status >= 400)
      throw new EngineError(`the container engine answered ${path.split("?", 1)[0]} with ${response.status}`);
    return response;
  }
}

/** The engine has refused a request. */
export class EngineError extends Error {}
