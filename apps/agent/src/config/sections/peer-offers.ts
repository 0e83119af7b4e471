import { ACTION_KINDS, type ActionKind } from "./action-kinds.ts";

/** What a peer socket may offer: the store token, and the peer actions. */
export const PEER_OFFERS = ["token", ...ACTION_KINDS] as const;
export type PeerOffer = "token" | ActionKind;
