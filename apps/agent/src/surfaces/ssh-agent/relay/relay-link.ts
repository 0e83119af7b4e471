import { createConnection, type Socket } from "node:net";
import {
  AgentFrameReader,
  SESSION_BIND,
  SshProtocolError,
  decodeAgentAnswer,
  encodeAgentFrame,
  encodeAgentRequest,
  type AgentAnswer,
  type AgentRequest,
} from "@devplat/ssh-protocol";
import { Serializer } from "@devplat/base/serializer";
import { peerCredentials } from "../../listening/peer-credentials.ts";
import { MAX_BOUND_SESSIONS } from "../policy/session-chain.ts";

/** Reason why another agent gave no answer. The message is for the status. */
export class RelayFault extends Error {}

/**
 * A connection to another agent, for one connection to this one: restrictions of keys there depend on the sessions that
 * the client has bound. It is opened for the first request, and again after a failure.
 */
export class RelayLink {
  readonly #path: string;
  readonly #onPeer: (pid: number | undefined) => void;
  readonly #turns = new Serializer();
  /** Content of each session-bind, in the order of the client. */
  readonly #binds: Buffer[] = [];
  #open: OpenLink | undefined;
  #isClosed = false;

  /** @param onPeer gets the process of the other agent for each connection */
  constructor(path: string, onPeer: (pid: number | undefined) => void) {
    this.#path = path;
    this.#onPeer = onPeer;
  }

  /** Passes a session-bind on, now or when the connection is made. The other agent decides itself about it. */
  async bind(content: Buffer, signal: AbortSignal): Promise<void> {
    const bind = Buffer.from(content);
    await this.#turns.run(async () => {
      // A host that the agent is forwarded to could fill the memory. Without a later bind the other agent permits less, never more.
      if (this.#binds.length === MAX_BOUND_SESSIONS) return;
      this.#binds.push(bind);
      if (this.#open !== undefined) await this.#send(this.#open, bindRequest(bind), signal);
    });
  }

  /** @throws RelayFault */
  async ask(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    return await this.#turns.run(async () => {
      if (this.#isClosed) throw new RelayFault("the connection is closed");
      this.#open ??= await this.#connect(signal);
      return await this.#send(this.#open, request, signal);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  async #connect(signal: AbortSignal): Promise<OpenLink> {
    const link = await OpenLink.connect(this.#path, signal);
    this.#onPeer(link.serverPid);
    try {
      for (const bind of this.#binds) await link.ask(bindRequest(bind), signal);
      return link;
    } catch (error) {
      link.close();
      throw error;
    }
  }

  async #send(link: OpenLink, request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    try {
      return await link.ask(request, signal);
    } catch (error) {
      // An answer that comes later would be taken for that of the next request.
      this.#drop();
      throw error;
    }
  }

  #drop(): void {
    this.#open?.close();
    this.#open = undefined;
  }
}

function bindRequest(content: Buffer): AgentRequest {
  return { type: "extension", name: SESSION_BIND, content };
}

/** One connection to another agent. It has one request at a time. */
class OpenLink {
  readonly serverPid: number | undefined;
  readonly #socket: Socket;
  readonly #reader = new AgentFrameReader();
  #waiting: PromiseWithResolvers<AgentAnswer> | undefined;

  private constructor(socket: Socket, serverPid: number | undefined) {
    this.serverPid = serverPid;
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => this.#fail(new RelayFault("the agent closed the connection")));
  }

  /** @throws RelayFault */
  static async connect(path: string, signal: AbortSignal): Promise<OpenLink> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = createConnection(path);
    const giveUp = (): void => reject(new RelayFault("the agent does not answer in time"));
    signal.addEventListener("abort", giveUp, { once: true });
    socket.once("connect", resolve);
    socket.once("error", (error) => reject(new RelayFault("nobody answers on the socket", { cause: error })));
    try {
      if (signal.aborted) giveUp();
      await promise;
      const credentials = peerCredentials(socket);
      credentials?.handle?.[Symbol.dispose]();
      // Keys may be added to it: they must not go to another user.
      if (credentials !== undefined && credentials.uid !== process.geteuid?.()) {
        throw new RelayFault("the agent belongs to another user");
      }
      return new OpenLink(socket, credentials?.pid);
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  async ask(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    const waiting = Promise.withResolvers<AgentAnswer>();
    this.#waiting = waiting;
    const giveUp = (): void => waiting.reject(new RelayFault("the agent does not answer in time"));
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      if (signal.aborted) giveUp();
      else if (this.#socket.destroyed) waiting.reject(new RelayFault("the agent closed the connection"));
      else this.#socket.write(encodeAgentFrame(encodeAgentRequest(request)));
      return await waiting.promise;
    } finally {
      this.#waiting = undefined;
      signal.removeEventListener("abort", giveUp);
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    try {
      this.#reader.push(chunk);
      const message = this.#reader.next();
      if (message === undefined) return;
      // An answer that nobody has asked for.
      if (this.#waiting === undefined) this.#socket.destroy();
      else this.#waiting.resolve(decodeAgentAnswer(message));
    } catch (error) {
      if (!(error instanceof SshProtocolError)) throw error;
      this.#fail(new RelayFault(`the agent's answer cannot be read: ${error.message}`));
      this.#socket.destroy();
    }
  }

  #fail(fault: RelayFault): void {
    this.#waiting?.reject(fault);
  }
}
