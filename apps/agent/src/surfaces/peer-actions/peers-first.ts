import type { Secret } from "@devplat/base";
import { isClipboardText, type Clipboard, type CopyOutcome } from "../../desktop/clipboard.ts";
import type { PeerFanOut } from "./fan-out.ts";

/** The clipboard in front of the user: the peers' where there are any, else this host's. */
export class PeersFirstClipboard implements Clipboard {
  readonly #peers: Pick<PeerFanOut, "send">;
  readonly #local: Clipboard;

  constructor(peers: Pick<PeerFanOut, "send">, local: Clipboard) {
    this.#peers = peers;
    this.#local = local;
  }

  async copy(text: Secret): Promise<CopyOutcome> {
    if (!isClipboardText(text.reveal())) return "unusable_text";
    if ((await this.#peers.send({ kind: "clipboard", text })) > 0) return "copied";
    return await this.#local.copy(text);
  }
}
