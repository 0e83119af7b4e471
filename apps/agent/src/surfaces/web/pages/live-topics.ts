import { html, livePartial } from "@devplat/web-kit";
import type { SshAgentStatus } from "../../../ssh-agent-view.ts";
import type { AgentStatus, RuleView } from "../../../status.ts";
import type { EnrolmentView } from "./enrolments/card.ts";
import { enrolmentPartials, setupPartials } from "./enrolments/live.ts";
import { overviewPartial } from "./index-page.ts";
import { LIVE_NOTICE_ID, LIVE_STATE_ID, liveState } from "./layout.ts";
import { storeNotice } from "./notices.ts";
import { peerSocketPartial } from "./remotes/peer-socket-page.ts";
import { remotePartials, topicHost } from "./remotes/remote-page.ts";
import { remotesPartial, type RemotesModel } from "./remotes/remotes-page.ts";
import { rulePartial, rulesPartial } from "./rules-page.ts";
import { sshAgentPartial } from "./ssh-agent/ssh-agent-page.ts";

/** Sources of the topics. */
export interface LiveSources {
  readonly status: AgentStatus;
  readonly rules: readonly RuleView[];
  readonly enrolments: readonly EnrolmentView[];
  readonly remotes: RemotesModel;
  /** Undefined while the SSH agent is off. */
  readonly sshAgent: SshAgentStatus | undefined;
}

/**
 * The parts of a page that change, as the live stream puts them in place: the header's and the word on the store, which
 * every page has, and those of the topic that the page names. Without a topic those of every page but a single rule's or remote's.
 */
export async function liveParts(topic: string | undefined, sources: LiveSources): Promise<string> {
  const { status, rules, enrolments, remotes, sshAgent } = sources;
  const wants = (name: string): boolean => topic === undefined || topic === name;
  const rule = topic?.startsWith("rule:") === true ? topic.slice("rule:".length) : undefined;
  const shown = rules.find(({ name }) => name === rule);
  const host = topicHost(topic);
  const parts = await Promise.all([
    livePartial(LIVE_STATE_ID, liveState(status)),
    livePartial(LIVE_NOTICE_ID, html`${storeNotice(status)}`),
    wants("overview") ? overviewPartial(status, rules) : "",
    wants("rules") ? rulesPartial(status, rules) : "",
    wants("enrolments") ? enrolmentPartials(enrolments) : "",
    wants("setup") ? setupPartials(enrolments) : "",
    shown === undefined ? "" : rulePartial(status, shown),
    wants("remotes") ? remotesPartial(remotes, status.time) : "",
    host === undefined ? "" : remotePartials(host, remotes, status.time),
    wants("peer-socket") ? peerSocketPartial(status) : "",
    wants("agent") ? sshAgentPartial(sshAgent, status.time) : "",
  ]);
  return parts.join("");
}
