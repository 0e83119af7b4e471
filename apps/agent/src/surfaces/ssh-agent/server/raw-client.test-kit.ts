import { once } from "node:events";
import { connect, type Socket } from "node:net";
import {
  AgentFrameReader,
  decodeAgentAnswer,
  encodeAgentFrame,
  encodeAgentRequest,
  type AgentAnswer,
  type AgentRequest,
} from "@devplat/ssh-protocol";

/** A client that sends bytes as it likes. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  readonly #reader = new AgentFrameReader();
  readonly #answers: AgentAnswer[] = [];
  #wake: () => void = () => undefined;
  isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isClosed = true;
      this.#wake();
    });
    socket.on("data", (chunk: Buffer) => {
      this.#reader.push(chunk);
      for (let message = this.#reader.next(); message !== undefined; message = this.#reader.next())
        this.#answers.push(decodeAgentAnswer(message));
      this.#wake();
    });
  }

  static async connect(path: string): Promise<RawClient> {
    const socket = connect(path);
    await once(socket, "connect");
    return new RawClient(socket);
  }

  send(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  sendMessage(message: Uint8Array): void {
    this.send(encodeAgentFrame(message));
  }

  /** @returns undefined when the connection was closed */
  async next(): Promise<AgentAnswer | undefined> {
    while (this.#answers.length === 0 && !this.isClosed) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    return this.#answers.shift();
  }

  async ask(request: AgentRequest): Promise<AgentAnswer | undefined> {
    this.sendMessage(encodeAgentRequest(request));
    return await this.next();
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}
