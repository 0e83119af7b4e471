import {
  SESSION_BIND,
  SshProtocolError,
  decodeAgentRequest,
  queryAnswer,
  type AgentAnswer,
  type AgentRequest,
} from "@devplat/ssh-protocol";
import { AgentRefusal } from "../agent-refusal.ts";
import type { PeerProcess } from "../peer-process/peer-process.ts";
import { isForwarded } from "../policy/permission.ts";
import { UNBOUND, bindSession, type SessionChain } from "../policy/session-chain.ts";
import { ConnectionKeys } from "./connection-keys.ts";
import { callerFields, type Connection, type SessionParts, type SocketScope } from "./connection-parts.ts";
import { Signing } from "./signing.ts";

const FAILURE: AgentAnswer = { type: "failure" };
const SUCCESS: AgentAnswer = { type: "success" };

/** The requests of one connection. They are answered one after another. */
export class AgentSession {
  readonly #parts: SessionParts;
  readonly #connection: Connection;
  readonly #keys: ConnectionKeys;
  readonly #signing: Signing;
  #chain: SessionChain = UNBOUND;

  constructor(parts: SessionParts, scope: SocketScope, caller: PeerProcess | undefined) {
    this.#parts = parts;
    // An agent that asks us for its own list, or ourselves: asking on would never end.
    const isLoop =
      caller !== undefined &&
      [process.pid, ...scope.relays.map(({ serverPid }) => serverPid)].includes(caller.pid);
    const relays = isLoop ? [] : scope.relays.map((agent) => agent.connect());
    this.#connection = { scope, caller, relays };
    this.#keys = new ConnectionKeys(parts, this.#connection);
    this.#signing = new Signing(parts, this.#connection);
  }

  get isForwarded(): boolean {
    return this.#chain.isBroken || this.#chain.sessions.some((session) => session.isForwarding);
  }

  /** @param message without its length */
  async answer(message: Buffer, signal: AbortSignal): Promise<AgentAnswer> {
    try {
      return await this.#answer(decodeAgentRequest(message), signal);
    } catch (error) {
      if (error instanceof SshProtocolError || error instanceof AgentRefusal || signal.aborted) {
        return FAILURE;
      }
      this.#parts.logger.error({ err: error }, "request to the SSH agent failed");
      return FAILURE;
    }
  }

  close(): void {
    for (const relay of this.#connection.relays) relay.close();
  }

  async #answer(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    const { lock } = this.#parts;
    switch (request.type) {
      case "identities":
        return {
          type: "identities",
          identities: lock.isLocked ? [] : await this.#keys.list(this.#chain, signal),
        };
      case "sign":
        return await this.#signing.answer(request, await this.#keys.visible(this.#chain), signal);
      case "extension":
        return await this.#extension(request, signal);
      case "lock":
      case "unlock":
        return await this.#setLock(request);
      case "remove-all":
        return await this.#removeAll(request, signal);
      case "add":
      case "remove":
        return lock.isLocked
          ? FAILURE
          : ((await this.#connection.relays[0]?.ask(request, signal)) ?? FAILURE);
      default:
        return FAILURE;
    }
  }

  /** Also while the agent is locked: the client does not repeat it later. */
  async #extension(
    { name, content }: AgentRequest & { type: "extension" },
    signal: AbortSignal,
  ): Promise<AgentAnswer> {
    if (name === "query") return queryAnswer(["query", SESSION_BIND]);
    if (name !== SESSION_BIND) return { type: "extension-failure" };
    const { chain, fault } = bindSession(this.#chain, content);
    const isNew = chain !== this.#chain;
    this.#chain = chain;
    // A refused one as well: another agent then knows as little about the destination.
    if (isNew) await Promise.all(this.#connection.relays.map((relay) => relay.bind(content, signal)));
    if (fault === undefined) return SUCCESS;
    this.#parts.logger.warn({ ...callerFields(this.#connection), reason: fault }, "SSH session-bind refused");
    return { type: "extension-failure" };
  }

  async #setLock(request: AgentRequest & { type: "lock" | "unlock" }): Promise<AgentAnswer> {
    const { lock, ownKeys, confirmations, logger, onChange } = this.#parts;
    if (!(await this.#mayManage())) return FAILURE;
    const { passphrase, type } = request;
    const isDone = type === "lock" ? await lock.lock(passphrase) : await lock.unlock(passphrase);
    logger.info(
      { ...callerFields(this.#connection), outcome: isDone ? "done" : "refused" },
      `SSH agent: ${type}`,
    );
    if (!isDone) return FAILURE;
    if (type === "lock") {
      ownKeys.forget();
      confirmations.clear();
    }
    onChange();
    return SUCCESS;
  }

  /** A host that the agent is forwarded to, or a container with a socket of its own, must not keep the user out. */
  async #mayManage(): Promise<boolean> {
    return (
      this.#connection.scope.sources === undefined && !isForwarded(await this.#keys.origin(this.#chain, []))
    );
  }

  async #removeAll(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    const { lock, ownKeys, logger, onChange } = this.#parts;
    if (lock.isLocked || !(await this.#mayManage())) return FAILURE;
    ownKeys.setHidden(true);
    await Promise.all(this.#connection.relays.map((relay) => relay.ask(request, signal)));
    logger.info(callerFields(this.#connection), "SSH agent: own keys hidden, keys of other agents removed");
    onChange();
    return SUCCESS;
  }
}
